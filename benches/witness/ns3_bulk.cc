// Benchmark for ns-3: one bulk transfer over a link, with bit errors if wanted.
//
//   flags=$(pkg-config --cflags --libs-only-l ns3-point-to-point ns3-applications)
//   g++ -O2 -std=c++17 ns3_bulk.cc -o ns3_bulk $flags
//   ./ns3_bulk --duration_s=60
//
// Debian: libns3-dev. (`--libs` also names development files of GSL, which are not
// needed.) --help lists the options. Prints one line of "key value" pairs:
// delivered (data packets' worth of bytes, in order, at the client), queue_drops,
// error_drops. Wall time and memory are measured from outside.
//
// The defaults are those of vanzara2014.tcl: Hybla from an initial threshold of one
// bandwidth-delay product, 100 Mbit/s, 600 ms, 20,000 packets of queue. Packets are 1502
// bytes on the link, 1448 of them data: PPP adds 2 to the 1500.
//
// At a bit error rate of 1e-5, with Hybla, ns-3.37 never returns from TcpRxBuffer::Add, or
// crashes, after some tens of simulated seconds.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>

using namespace ns3;

int
main(int argc, char* argv[])
{
    std::string congestionControl = "Hybla";
    double rateBps = 100e6;
    double roundTripS = 0.6;
    double durationS = 60;
    double bitErrorRate = 0;
    uint32_t queuePackets = 20000;
    uint32_t windowSegments = 65535;
    uint32_t slowStartThreshold = 5000;
    uint32_t initialWindow = 10;
    uint32_t mss = 1448;
    uint32_t seed = 1;

    CommandLine options(__FILE__);
    options.AddValue("congestion_control", "Hybla, Cubic, LinuxReno, ...", congestionControl);
    options.AddValue("rate_bps", "of the link, each way", rateBps);
    options.AddValue("round_trip_s", "without queueing", roundTripS);
    options.AddValue("duration_s", "simulated", durationS);
    options.AddValue("bit_error_rate", "towards the client", bitErrorRate);
    options.AddValue("queue_packets", "in front of the link, each way", queuePackets);
    options.AddValue("window_segments", "send and receive buffer", windowSegments);
    options.AddValue("slow_start_threshold", "the initial one, in segments", slowStartThreshold);
    options.AddValue("initial_window", "in segments", initialWindow);
    options.AddValue("mss", "data bytes in a packet", mss);
    options.AddValue("seed", "of the bit errors", seed);
    options.Parse(argc, argv);

    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       StringValue("ns3::Tcp" + congestionControl));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(windowSegments * mss));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(windowSegments * mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initialWindow));
    Config::SetDefault("ns3::TcpSocket::InitialSlowStartThreshold",
                       UintegerValue(slowStartThreshold * mss));
    // Every packet is acknowledged.
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));

    NodeContainer nodes(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rateBps)));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(roundTripS / 2)));
    link.SetQueue("ns3::DropTailQueue<Packet>",
                  "MaxSize",
                  QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, queuePackets)));
    // Removes the queue discipline (FQ-CoDel) in front of the device's queue, so that drops
    // happen where they are counted.
    link.DisableFlowControl();
    NetDeviceContainer devices = link.Install(nodes);

    uint64_t queueDrops = 0;
    uint64_t errorDrops = 0;
    const auto count = [](uint64_t* drops, Ptr<const Packet>) { ++*drops; };
    const auto counter = [&](uint64_t& drops) {
        return MakeBoundCallback(+count, &drops);
    };
    auto sender = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    auto receiver = DynamicCast<PointToPointNetDevice>(devices.Get(1));
    sender->GetQueue()->TraceConnectWithoutContext("Drop", counter(queueDrops));
    receiver->TraceConnectWithoutContext("PhyRxDrop", counter(errorDrops));
    if (bitErrorRate > 0)
    {
        auto errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_BIT);
        errors->SetRate(bitErrorRate);
        receiver->SetReceiveErrorModel(errors);
    }

    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);

    PacketSinkHelper clientHelper("ns3::TcpSocketFactory",
                                  InetSocketAddress(Ipv4Address::GetAny(), 5001));
    ApplicationContainer client = clientHelper.Install(nodes.Get(1));
    BulkSendHelper serverHelper("ns3::TcpSocketFactory",
                                InetSocketAddress(interfaces.GetAddress(1), 5001));
    serverHelper.SetAttribute("SendSize", UintegerValue(mss));
    serverHelper.Install(nodes.Get(0));

    Simulator::Stop(Seconds(durationS));
    Simulator::Run();
    std::cout << "delivered " << DynamicCast<PacketSink>(client.Get(0))->GetTotalRx() / mss
              << " queue_drops " << queueDrops << " error_drops " << errorDrops << std::endl;
    Simulator::Destroy();
    return 0;
}
