// What both programs have: settings, a message, hosts with a full-duplex link each, and what they print.
#pragma once
#include <cstdio>
#include <ctime>
#include <fstream>
#include <simgrid/s4u.hpp>
namespace sg4 = simgrid::s4u;

constexpr double MESSAGE_BYTES = 1e6;
inline int message; // carries nothing

// A link gives all of its bandwidth to the one message that it carries; small stacks are enough.
inline void configure()
{
  for (const char* set : {"network/model:CM02", "network/crosstraffic:0", "contexts/stack-size:16", "contexts/guard-size:0"})
    sg4::Engine::set_config(set);
}

inline long peak_bytes()
{
  std::ifstream status("/proc/self/status");
  long peak_kib = 0;
  for (std::string line; std::getline(status, line);)
    std::sscanf(line.c_str(), "VmHWM: %ld", &peak_kib);
  return 1024 * peak_kib;
}

inline sg4::Host* host(sg4::NetZone* zone, const std::string& name, double port_s)
{
  auto* made = zone->create_host(name, 1e9);
  auto* link = zone->create_split_duplex_link(name, MESSAGE_BYTES / port_s)->set_latency(0)->seal();
  zone->add_route(made->get_netpoint(), nullptr, nullptr, nullptr, {{link, sg4::LinkInRoute::Direction::UP}}, true);
  return made;
}

// The seconds of a core since `cpu`, and those of each step by the ends of all, the first of which is 0.
inline void print(long cpu, const std::vector<double>& ends_s)
{
  std::printf("{\"cpu_s\": %.6f, \"peak_bytes\": %ld, ", double(std::clock() - cpu) / CLOCKS_PER_SEC, peak_bytes());
  std::printf("\"step_s\": [");
  for (size_t step = 1; step < ends_s.size(); step++)
    std::printf("%s%.9f", step > 1 ? ", " : "", ends_s[step] - ends_s[step - 1]);
  std::puts("]}");
}
