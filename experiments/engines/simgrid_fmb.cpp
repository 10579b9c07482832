// The job of job.py as an S4U program: WAY WORKERS STEPS PORT_S UPDATE_S MU SIGMA SEED. It prints what process.py prints.
//
// Every rank is an actor on a host of its own. WAY is messages or semaphores. Messages pass through mailboxes and links; a port is the
// host's full-duplex link. A blocking put begins when its get does: the actor `port` gets one gradient after another, which so pass the
// master's link in turn. With semaphores there is no network: ranks wait for semaphores and sleep, as processes do in plain_simpy.py.
#include "simgrid_hosts.hpp"
#include <random>

int main(int argc, char* argv[])
{
  const long cpu = std::clock();
  sg4::Engine engine(&argc, argv);
  // A link gives all of its bandwidth to the one message that it carries; small stacks are enough.
  for (const char* set : {"network/model:CM02", "network/crosstraffic:0", "contexts/stack-size:16", "contexts/guard-size:0"})
    sg4::Engine::set_config(set);
  const bool messages = argv[1] == std::string("messages");
  const int workers = std::atoi(argv[2]), steps = std::atoi(argv[3]);
  const double port_s = std::atof(argv[4]), update_s = std::atof(argv[5]);
  std::lognormal_distribution<double> compute_s(std::atof(argv[6]), std::atof(argv[7]));
  std::mt19937_64 random(std::strtoull(argv[8], nullptr, 10));

  std::vector<sg4::Host*> hosts;
  auto* zone = sg4::create_star_zone("cluster");
  for (int i = 0; i <= workers; i++)
    hosts.push_back(host(zone, "rank" + std::to_string(i), port_s)); // 0 is the master
  zone->seal();
  std::vector<sg4::Mailbox*> inboxes{sg4::Mailbox::by_name("rank0")};
  std::vector<sg4::SemaphorePtr> arrived{nullptr};
  auto port = sg4::Semaphore::create(1), gathered = sg4::Semaphore::create(0);
  std::vector<double> ends_s{0};
  for (int i = 1; i <= workers; i++) {
    inboxes.push_back(sg4::Mailbox::by_name(hosts[i]->get_name()));
    arrived.push_back(sg4::Semaphore::create(0));
    sg4::Actor::create(hosts[i]->get_name(), hosts[i], [&, i] {
      for (int step = 0; step < steps; step++) {
        messages ? (void)inboxes[i]->get<int>() : arrived[i]->acquire();
        sg4::this_actor::sleep_for(compute_s(random));
        messages ? inboxes[0]->put(&message, MESSAGE_BYTES) : port->acquire();
        if (not messages) {
          sg4::this_actor::sleep_for(port_s);
          port->release();
          gathered->release();
        }
      }
    });
  }
  if (messages)
    sg4::Actor::create("port", hosts[0], [&] {
      for (int gradient = 0; gradient < steps * workers; gradient++, gathered->release())
        inboxes[0]->get<int>();
    });
  sg4::Actor::create("master", hosts[0], [&] {
    for (int step = 0; step < steps; step++, ends_s.push_back(sg4::Engine::get_clock())) {
      for (int i = 1; i <= workers; i++) {
        messages ? inboxes[i]->put(&message, MESSAGE_BYTES) : sg4::this_actor::sleep_for(port_s);
        if (not messages)
          arrived[i]->release();
      }
      for (int i = 1; i <= workers; i++)
        gathered->acquire();
      sg4::this_actor::sleep_for(update_s);
    }
  });
  engine.run();

  std::printf("{\"cpu_s\": %.6f, \"peak_bytes\": %ld, ", double(std::clock() - cpu) / CLOCKS_PER_SEC, peak_bytes());
  std::printf("\"step_s\": [");
  for (int step = 0; step < steps; step++)
    std::printf("%s%.9f", step ? ", " : "", ends_s[step + 1] - ends_s[step]);
  std::puts("]}");
}
