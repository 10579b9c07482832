// The job of job.py as an S4U program: WORKERS STEPS PORT_S UPDATE_S MU SIGMA SEED. It prints what process.py prints.
//
// Every rank is an actor on a host of its own. Messages pass through mailboxes and links; a port is the host's full-duplex link. A blocking
// put begins when its get does: the actor `port` gets one gradient after another, which so pass the master's link in turn.
#include "simgrid_hosts.hpp"
#include <random>

int main(int argc, char* argv[])
{
  const long cpu = std::clock();
  sg4::Engine engine(&argc, argv);
  configure();
  const int workers = std::atoi(argv[1]), steps = std::atoi(argv[2]);
  const double port_s = std::atof(argv[3]), update_s = std::atof(argv[4]);
  std::lognormal_distribution<double> compute_s(std::atof(argv[5]), std::atof(argv[6]));
  std::mt19937_64 random(std::strtoull(argv[7], nullptr, 10));

  std::vector<sg4::Host*> hosts;
  auto* zone = sg4::create_star_zone("cluster");
  for (int i = 0; i <= workers; i++)
    hosts.push_back(host(zone, "rank" + std::to_string(i), port_s)); // 0 is the master
  zone->seal();
  std::vector<sg4::Mailbox*> inboxes{sg4::Mailbox::by_name("rank0")};
  auto gathered = sg4::Semaphore::create(0);
  std::vector<double> ends_s{0};
  for (int i = 1; i <= workers; i++) {
    inboxes.push_back(sg4::Mailbox::by_name(hosts[i]->get_name()));
    sg4::Actor::create(hosts[i]->get_name(), hosts[i], [&, i] {
      for (int step = 0; step < steps; step++) {
        inboxes[i]->get<int>();
        sg4::this_actor::sleep_for(compute_s(random));
        inboxes[0]->put(&message, MESSAGE_BYTES);
      }
    });
  }
  sg4::Actor::create("port", hosts[0], [&] {
    for (int gradient = 0; gradient < steps * workers; gradient++, gathered->release())
      inboxes[0]->get<int>();
  });
  sg4::Actor::create("master", hosts[0], [&] {
    for (int step = 0; step < steps; step++, ends_s.push_back(sg4::Engine::get_clock())) {
      for (int i = 1; i <= workers; i++)
        inboxes[i]->put(&message, MESSAGE_BYTES);
      for (int i = 1; i <= workers; i++)
        gathered->acquire();
      sg4::this_actor::sleep_for(update_s);
    }
  });
  engine.run();
  print(cpu, ends_s);
}
