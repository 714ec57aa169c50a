// Witness for the queues of crates/link that bound delays: CoDel, FQ-CoDel and PIE of ns-3 with the
// same packets.
//
//   ns3_queues --queue=codel|fq-codel|pie [--ecn=1]
//
// Prints a line for each packet that is offered to the queue of a 10 Mbit/s link: the time in
// nanoseconds, its flow, its bytes with the IP header, and the time at which its transmission began,
// or - if it was dropped. With --ecn=1, also whether it was marked. All random numbers have a seed.
//
// The output is in crates/link/tests/ns3/*.txt; crates/link/tests/ns3.rs compares with it. ns3.py
// builds and runs this program:
//
//   python3 benches/witness/ns3.py --record-queues

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/traffic-control-module.h"

#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr double RATE = 10e6;

struct Fate
{
    int64_t at;
    unsigned flow;
    unsigned bytes;
    int64_t departed;
    bool marked;
};

std::vector<Fate> fates;
Ptr<QueueDisc> queue;
bool busy = false;

void
Transmit()
{
    Ptr<QueueDiscItem> item = queue->Dequeue();
    if (!item)
    {
        busy = false;
        return;
    }
    busy = true;
    // The payload holds the number of the packet.
    uint32_t number;
    item->GetPacket()->CopyData(reinterpret_cast<uint8_t*>(&number), sizeof number);
    fates[number].departed = Simulator::Now().GetNanoSeconds();
    Ptr<Ipv4QueueDiscItem> ip = DynamicCast<Ipv4QueueDiscItem>(item);
    fates[number].marked = ip->GetHeader().GetEcn() == Ipv4Header::ECN_CE;
    double seconds = fates[number].bytes * 8 / RATE;
    Simulator::Schedule(NanoSeconds(static_cast<int64_t>(seconds * 1e9 + 0.5)), &Transmit);
}

void
Arrive(uint32_t number, bool ecn)
{
    const Fate& fate = fates[number];
    std::vector<uint8_t> text(fate.bytes - 20, 0);
    std::copy_n(reinterpret_cast<uint8_t*>(&number), sizeof number, text.begin());
    Ipv4Header header;
    header.SetSource(Ipv4Address(0x0a000001 + fate.flow));
    header.SetDestination(Ipv4Address("10.1.0.1"));
    // Neither TCP nor UDP, so that flows differ by address and the payload is not taken for a header.
    header.SetProtocol(253);
    header.SetPayloadSize(fate.bytes - 20);
    if (ecn)
    {
        header.SetEcn(Ipv4Header::ECN_ECT0);
    }
    Ptr<Packet> packet = Create<Packet>(text.data(), text.size());
    Ptr<Ipv4QueueDiscItem> item = Create<Ipv4QueueDiscItem>(packet, Address(), 0x0800, header);
    item->SetTimeStamp(Simulator::Now());
    queue->Enqueue(item);
    if (!busy)
    {
        Transmit();
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    std::string kind = "codel";
    bool ecn = false;
    CommandLine command;
    command.AddValue("queue", "codel, fq-codel or pie", kind);
    command.AddValue("ecn", "whether packets are ECN-capable, and marked", ecn);
    command.Parse(argc, argv);
    RngSeedManager::SetSeed(7);

    const std::map<std::string, std::string> types = {{"codel", "ns3::CoDelQueueDisc"},
                                                      {"fq-codel", "ns3::FqCoDelQueueDisc"},
                                                      {"pie", "ns3::PieQueueDisc"}};
    ObjectFactory factory(types.at(kind));
    // FQ-CoDel holds at most 200 packets: unlike Linux's, ns-3's count of drops does not grow when its limit is exceeded.
    factory.Set("MaxSize", StringValue(kind == "fq-codel" ? "1000p" : "200p"));
    factory.Set("UseEcn", BooleanValue(ecn));
    if (kind == "pie")
    {
        // The RFC's values; ns-3 has other defaults. No burst allowance, for which ns-3 has rules of its own.
        factory.Set("MeanPktSize", UintegerValue(1500));
        factory.Set("QueueDelayReference", TimeValue(MilliSeconds(15)));
        factory.Set("Supdate", TimeValue(MilliSeconds(15)));
        factory.Set("MaxBurstAllowance", TimeValue(Seconds(0)));
        factory.Set("UseDerandomization", BooleanValue(true));
    }
    queue = factory.Create<QueueDisc>();
    if (kind == "fq-codel")
    {
        DynamicCast<FqCoDelQueueDisc>(queue)->SetQuantum(1500);
    }
    queue->Initialize();

    // Poisson arrivals of four flows, with a load that changes every quarter of a second and sometimes
    // exceeds the link's rate. The second flow offers twice as many packets as the first, and so on. The
    // fourth begins in the middle.
    Ptr<ExponentialRandomVariable> gap = CreateObject<ExponentialRandomVariable>();
    Ptr<UniformRandomVariable> uniform = CreateObject<UniformRandomVariable>();
    const std::vector<double> loads = {0.6, 1.3, 1.5, 1.1, 0.3, 1.4, 1.05, 0.8, 2.0, 0.4};
    double at = 0;
    const double until = kind == "pie" ? 5 : 2.5;
    while (at < until)
    {
        double load = loads[static_cast<size_t>(at / 0.25) % loads.size()];
        // 800 bytes on average.
        at += gap->GetValue(800 * 8 / RATE / load, 0);
        double which = uniform->GetValue();
        unsigned flow = which < 0.07 ? 0 : which < 0.2 ? 1 : which < 0.5 ? 2 : 3;
        if (flow == 3 && at < until / 2)
        {
            flow = 2;
        }
        unsigned bytes = 100 + static_cast<unsigned>(uniform->GetValue() * 1401);
        fates.push_back({static_cast<int64_t>(at * 1e9), flow, bytes, -1, false});
    }
    for (uint32_t number = 0; number < fates.size(); number++)
    {
        Simulator::Schedule(NanoSeconds(fates[number].at), &Arrive, number, ecn);
    }
    // PIE's timer would run forever.
    Simulator::Stop(Seconds(until + 5));
    Simulator::Run();
    for (const Fate& fate : fates)
    {
        std::cout << fate.at << ' ' << fate.flow << ' ' << fate.bytes << ' ';
        if (fate.departed < 0)
        {
            std::cout << '-';
        }
        else
        {
            std::cout << fate.departed;
        }
        if (ecn)
        {
            std::cout << ' ' << fate.marked;
        }
        std::cout << '\n';
    }
    Simulator::Destroy();
    return 0;
}
