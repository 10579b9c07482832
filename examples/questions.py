"""One job, and what would change it: three changes on the same random numbers, and the causes of its step time."""

import trainsim

job = trainsim.Scenario(
    trainsim.make_protocol("allreduce"),
    trainsim.read_workload("resnet50"),
    workers=16,
    steps=10,
    cluster=trainsim.read_cluster("p3.8xlarge*4"),
)

if __name__ == "__main__":
    found = trainsim.what_if(job, "workers=8", "network.bandwidth=25 Gbit/s", "algorithm=ring", replications=3)
    print(found.to_frame().round(3).to_string(index=False))
    print("the largest gain:", trainsim.why(found.base).critical)
