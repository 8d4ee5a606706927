// SPDX-License-Identifier: MIT
#include "nic_counters.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "number.hpp"
#include "sluice/deadline.hpp"

namespace sluice::cli {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> entries(const fs::path &of)
{
	std::vector<std::string> names;
	std::error_code err;

	for (fs::directory_iterator at(of, err), end; !err && at != end;
	     at.increment(err))
		names.push_back(at->path().filename());
	std::ranges::sort(names);
	return names;
}

/// A counter may refuse to be read.
bool read_number(const fs::path &path, uint64_t &to)
{
	std::ifstream file(path);
	std::string line;

	std::getline(file, line);
	auto n = parse_counter(line);
	to = n.value_or(0);
	return n.has_value();
}

void add_group(const fs::path &of, const std::string &nic, bool words,
	       std::vector<nic_sample> &to)
{
	for (const std::string &name : entries(of)) {
		nic_sample s{.us = 0, .nic = nic, .counter = name, .value = 0};

		// It only tells how often the others may be read.
		if (name == "lifespan" || !read_number(of / name, s.value))
			continue;
		// InfiniBand counts words of 32 bits.
		if (words && name.ends_with("_data"))
			s.value *= 4;
		s.us = monotonic_us();
		to.push_back(std::move(s));
	}
}

bool either(const std::string &name, const char *a, const char *b)
{
	return name == a || name == b;
}

bool bytes(const std::string &name)
{
	return either(name, "port_xmit_data", "port_rcv_data") ||
	       either(name, "sent_bytes", "rcvd_bytes");
}

} // namespace

std::optional<uint64_t> parse_counter(std::string_view text)
{
	uint64_t n = 0;

	return parse_number(text.substr(0, text.find('\n')), n) ? std::optional(n)
								: std::nullopt;
}

double monotonic_us()
{
	return std::chrono::duration<double, std::micro>(
		       clock::now().time_since_epoch())
		.count();
}

std::vector<nic_sample> read_nic_counters(std::string_view root)
{
	fs::path cards = fs::path(root) / "sys/class/infiniband";
	std::vector<nic_sample> all;

	for (const std::string &card : entries(cards)) {
		auto ports = entries(cards / card / "ports");

		for (const std::string &port : ports) {
			fs::path of = cards / card / "ports" / port;
			std::string name = ports.size() > 1 ? card + ":" + port : card;

			add_group(of / "counters", name, true, all);
			add_group(of / "hw_counters", name, false, all);
		}
	}
	return all;
}

std::vector<nic_sample> traffic_of(const std::vector<nic_sample> &all)
{
	std::vector<nic_sample> some;
	std::set<std::string> told;

	for (const nic_sample &s : all)
		if (bytes(s.counter)) {
			some.push_back(s);
			told.insert(s.nic);
		}
	for (const nic_sample &s : all)
		if (!told.contains(s.nic) &&
		    either(s.counter, "sent_pkts", "rcvd_pkts"))
			some.push_back(s);
	return some;
}

} // namespace sluice::cli
