"""What ranks run on: hosts, links, how TCP and polling behave."""
