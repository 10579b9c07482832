// The jobs of equal ranks of job.py as an S4U program: TEXT RANKS STEPS MESSAGE_S COMPUTE_S SHIFT... It prints what process.py prints.
//
// Every rank is an actor on a host of its own, and one of ddp has another that sums. A message passes its sender's and its receiver's
// link, each full duplex. All ranks are equally fast, and no link carries two messages at once.
#include "simgrid_hosts.hpp"

static sg4::Mailbox* inbox(int from, int to)
{
  return sg4::Mailbox::by_name(std::to_string(from) + ">" + std::to_string(to));
}

static void exchange(sg4::Mailbox* to, sg4::Mailbox* from)
{
  auto sent = to->put_async(&message, MESSAGE_BYTES);
  from->get<int>();
  sent->wait();
}

int main(int argc, char* argv[])
{
  const long cpu = std::clock();
  sg4::Engine engine(&argc, argv);
  configure();
  const std::string text = argv[1];
  const int ranks = std::atoi(argv[2]), steps = std::atoi(argv[3]);
  const double message_s = std::atof(argv[4]), compute_s = std::atof(argv[5]);

  std::vector<double> ends_s(steps + 1, 0.0);
  std::vector<sg4::SemaphorePtr> ready, summed;
  std::vector<sg4::Host*> hosts;
  auto* zone = sg4::create_star_zone("cluster");
  for (int i = 0; i < ranks; i++)
    hosts.push_back(host(zone, "rank" + std::to_string(i), message_s));
  zone->seal();
  for (int i = 0; i < ranks; i++) {
    ready.push_back(sg4::Semaphore::create(0));
    summed.push_back(sg4::Semaphore::create(0));
    auto ring = [ranks, to = inbox(i, (i + 1) % ranks), from = inbox((i + ranks - 1) % ranks, i)] {
      for (int round = 0; round < 2 * (ranks - 1); round++)
        exchange(to, from);
    };
    if (text == "ddp")
      sg4::Actor::create("sums", hosts[i], [&, i, ring] {
        for (int bucket = 0; bucket < 2 * steps; bucket++, summed[i]->release()) {
          ready[i]->acquire();
          ring();
        }
      });
    sg4::Actor::create("rank", hosts[i], [&, i, ring] {
      for (int step = 0; step < steps; step++, ends_s[step] = sg4::Engine::get_clock()) {
        if (text == "ddp") {
          for (double seconds : {compute_s * 2 / 3, compute_s / 3}) {
            sg4::this_actor::sleep_for(seconds);
            ready[i]->release();
          }
          summed[i]->acquire();
          summed[i]->acquire();
          continue;
        }
        sg4::this_actor::sleep_for(compute_s);
        if (text == "d-psgd") {
          const int far = std::atoi(argv[6 + step]);
          exchange(inbox(i, (i + far) % ranks), inbox((i + ranks - far) % ranks, i));
        } else if (step % 4 == 3)
          ring();
      }
    });
  }
  engine.run();
  print(cpu, ends_s);
}
