// What both programs have: a message, hosts with a full-duplex link each, and the memory that a process took at most.
#pragma once
#include <cstdio>
#include <ctime>
#include <fstream>
#include <simgrid/s4u.hpp>
namespace sg4 = simgrid::s4u;

constexpr double MESSAGE_BYTES = 1e6;
inline int message; // carries nothing

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
