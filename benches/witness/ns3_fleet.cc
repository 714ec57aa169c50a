// Benchmark for ns-3: NewReno flows sharing one drop-tail bottleneck.
//
//   flags=$(pkg-config --cflags --libs-only-l ns3-point-to-point ns3-applications)
//   g++ -O2 -std=c++17 ns3_fleet.cc -o ns3_fleet $flags
//   ./ns3_fleet --duration_s=20
//
// Debian: libns3-dev. (`--libs` also names development files of GSL, which are not
// needed.) --help lists the options. Prints one line of "key value" pairs:
// delivered (data packets' worth of bytes, in order, at the clients, all flows together),
// queue_drops (at the bottleneck). Wall time and memory are measured from outside.
//
// The network and its defaults are those of fleet.tcl: see there. Unlike ns-2's
// Agent/TCP/Newreno, the flows use SACK: without it, ns-3.37 crashes at the first losses
// (in TcpRateLinux::SkbSent).

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
    uint32_t flows = 100;
    double rateBps = 100e6;
    double accessRateBps = 1e9;
    double accessDelayS = 0.005;
    double roundTripS = 0.6;
    double durationS = 200;
    double startSpreadS = 10;
    uint32_t queuePackets = 5000;
    uint32_t windowSegments = 10000;
    uint32_t initialWindow = 10;
    uint32_t mss = 1448;
    bool sack = true;

    CommandLine options(__FILE__);
    options.AddValue("flows", "how many", flows);
    options.AddValue("rate_bps", "of the bottleneck, each way", rateBps);
    options.AddValue("access_rate_bps", "of each access link", accessRateBps);
    options.AddValue("access_delay_s", "of each access link, one way", accessDelayS);
    options.AddValue("round_trip_s", "without queueing", roundTripS);
    options.AddValue("duration_s", "simulated", durationS);
    options.AddValue("start_spread_s", "from the first flow's start to the last's", startSpreadS);
    options.AddValue("queue_packets", "in front of the bottleneck", queuePackets);
    options.AddValue("window_segments", "send and receive buffer", windowSegments);
    options.AddValue("initial_window", "in segments", initialWindow);
    options.AddValue("mss", "data bytes in a packet", mss);
    options.AddValue("sack", "whether SACK is negotiated", sack);
    options.Parse(argc, argv);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(windowSegments * mss));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(windowSegments * mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initialWindow));
    // Every packet is acknowledged.
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));

    const auto pointToPoint = [](double linkRateBps, double delayS, uint32_t packets) {
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(linkRateBps)));
        helper.SetChannelAttribute("Delay", TimeValue(Seconds(delayS)));
        helper.SetQueue("ns3::DropTailQueue<Packet>",
                        "MaxSize",
                        QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
        // Removes the queue discipline (FQ-CoDel) in front of the device's queue, so that drops
        // happen where they are counted.
        helper.DisableFlowControl();
        return helper;
    };
    // All queues but the bottleneck's are long enough never to drop.
    auto access = pointToPoint(accessRateBps, accessDelayS, 1000000);
    auto bottleneck = pointToPoint(rateBps, roundTripS / 2 - 2 * accessDelayS, queuePackets);

    NodeContainer routers(2);
    NodeContainer servers(flows);
    NodeContainer clients(flows);
    InternetStackHelper internet;
    internet.Install(routers);
    internet.Install(servers);
    internet.Install(clients);

    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    const auto connect = [&addresses](PointToPointHelper& helper, Ptr<Node> a, Ptr<Node> b) {
        NetDeviceContainer devices = helper.Install(a, b);
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        return std::make_pair(devices, interfaces.GetAddress(1));
    };

    uint64_t queueDrops = 0;
    const auto count = [](uint64_t* drops, Ptr<const Packet>) { ++*drops; };
    NetDeviceContainer middle = connect(bottleneck, routers.Get(0), routers.Get(1)).first;
    DynamicCast<PointToPointNetDevice>(middle.Get(0))
        ->GetQueue()
        ->TraceConnectWithoutContext("Drop", MakeBoundCallback(+count, &queueDrops));

    ApplicationContainer sinks;
    for (uint32_t i = 0; i < flows; ++i)
    {
        connect(access, servers.Get(i), routers.Get(0));
        Ipv4Address client = connect(access, routers.Get(1), clients.Get(i)).second;

        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), 5001));
        sinks.Add(sink.Install(clients.Get(i)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(client, 5001));
        source.SetAttribute("SendSize", UintegerValue(mss));
        source.Install(servers.Get(i)).Start(Seconds(startSpreadS * i / flows));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Simulator::Stop(Seconds(durationS));
    Simulator::Run();
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < flows; ++i)
    {
        bytes += DynamicCast<PacketSink>(sinks.Get(i))->GetTotalRx();
    }
    std::cout << "delivered " << bytes / mss << " queue_drops " << queueDrops << std::endl;
    Simulator::Destroy();
    return 0;
}
