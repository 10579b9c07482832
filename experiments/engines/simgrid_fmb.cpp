// The job of job.py as an S4U program: WORKERS STEPS PORT_S UPDATE_S MU SIGMA SEED. It prints what child.py prints.
//
// Every rank is an actor on a host of its own, a port is the host's full-duplex link, and a message takes it for PORT_S. A blocking
// put of a mailbox begins when its get does: the actor `port` gets one gradient after another, and so they pass the master's link.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>
#include <simgrid/s4u.hpp>
namespace sg4 = simgrid::s4u;

constexpr double MESSAGE_BYTES = 1e6;
static int message; // carries nothing

static long peak_bytes()
{
  std::ifstream status("/proc/self/status");
  long peak_kib = 0;
  for (std::string line; std::getline(status, line);)
    std::sscanf(line.c_str(), "VmHWM: %ld", &peak_kib);
  return 1024 * peak_kib;
}

static sg4::Host* host(sg4::NetZone* zone, const std::string& name, double port_s)
{
  auto* made = zone->create_host(name, 1e9);
  auto* link = zone->create_split_duplex_link(name, MESSAGE_BYTES / port_s)->set_latency(0)->seal();
  zone->add_route(made->get_netpoint(), nullptr, nullptr, nullptr, {{link, sg4::LinkInRoute::Direction::UP}}, true);
  return made;
}

int main(int argc, char* argv[])
{
  const auto wall   = std::chrono::steady_clock::now();
  const auto cpu    = std::clock();
  const long before = peak_bytes();
  sg4::Engine engine(&argc, argv);
  // A link gives all of its bandwidth to the one message that it carries; stacks are small enough for many actors.
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "contexts/stack-size:64", "contexts/guard-size:0"})
    sg4::Engine::set_config(setting);
  const int workers = std::atoi(argv[1]), steps = std::atoi(argv[2]);
  const double port_s = std::atof(argv[3]), update_s = std::atof(argv[4]);
  std::lognormal_distribution<double> compute_s(std::atof(argv[5]), std::atof(argv[6]));
  std::mt19937_64 random(std::strtoull(argv[7], nullptr, 10));

  auto* zone        = sg4::create_star_zone("cluster");
  auto* master_host = host(zone, "master", port_s);
  auto* gradients   = sg4::Mailbox::by_name("master");
  auto gathered     = sg4::Semaphore::create(0);
  std::vector<sg4::Mailbox*> inboxes;
  std::vector<double> ends_s{0};
  for (int i = 0; i < workers; i++) {
    const auto name = "worker" + std::to_string(i);
    auto* inbox     = inboxes.emplace_back(sg4::Mailbox::by_name(name));
    sg4::Actor::create(name, host(zone, name, port_s), [&, inbox] {
      for (int step = 0; step < steps; step++) {
        inbox->get<int>();
        sg4::this_actor::sleep_for(compute_s(random));
        gradients->put(&message, MESSAGE_BYTES);
      }
    });
  }
  zone->seal();
  sg4::Actor::create("port", master_host, [&] {
    for (int step = 0; step < steps; step++, gathered->release())
      for (int i = 0; i < workers; i++)
        gradients->get<int>();
  });
  sg4::Actor::create("master", master_host, [&] {
    for (int step = 0; step < steps; step++, ends_s.push_back(sg4::Engine::get_clock())) {
      for (auto* inbox : inboxes)
        inbox->put(&message, MESSAGE_BYTES);
      gathered->acquire();
      sg4::this_actor::sleep_for(update_s);
    }
  });
  engine.run();

  const double wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count();
  const double cpu_s  = double(std::clock() - cpu) / CLOCKS_PER_SEC;
  std::printf("{\"wall_s\": %.6f, \"cpu_s\": %.6f, \"before_bytes\": %ld, \"peak_bytes\": %ld, \"step_s\": [", wall_s, cpu_s, before, peak_bytes());
  for (int step = 0; step < steps; step++)
    std::printf("%s%.9f", step ? ", " : "", ends_s[step + 1] - ends_s[step]);
  std::puts("]}");
}
