// SPDX-License-Identifier: MIT
// Any text as events of amdkfd. An input that begins with a zero byte is numbers, which
// are printed as the kernel does and must be read back unchanged.
#include <cstring>
#include <format>

#include "edge.hpp"
#include "migrations.hpp"

using namespace sluice;
using namespace sluice::detail;
using sluice::fuzz::must;
using sluice::fuzz::next_part;

namespace {

constexpr pid_t our_process = 42;
constexpr uint32_t our_gpu = 0xa1;

/// An event.
struct numbers {
	uint64_t ns, pages;
	uint32_t start, from, to;
	int32_t process;
	unsigned char kind;
};

void written(std::string_view input)
{
	numbers e{};

	input.copy(reinterpret_cast<char *>(&e), sizeof(e));
	e.process &= 0x3fffff; // PID_MAX_LIMIT
	e.ns >>= 1;
	std::string line =
		std::format("{:x} {} -{} @{:x}({:x}) {:x}->{:x} {:x}:0 2", e.kind, e.ns,
			    e.process, e.start, e.pages, e.from, e.to, e.to);
	auto m = parse_migration(line);
	must(m.has_value() == (e.kind == KFD_SMI_EVENT_MIGRATE_START));
	if (m)
		must(m->process == e.process && m->pages == e.pages &&
		     m->from == e.from && m->to == e.to);
}

device_counters counted(std::string_view text)
{
	device_counters all;

	count_migrations(all, text, our_process, our_gpu);
	return all;
}

std::string lower(std::string_view text)
{
	std::string all(text);

	for (char &c : all)
		c = c >= 'A' && c <= 'F' ? static_cast<char>(c | 0x20) : c;
	return all;
}

/// The total is the sum of the lines; what is no migration of ours does not count.
void read(std::string_view text)
{
	auto all = counted(text);
	uint64_t in = 0, out = 0;

	while (!text.empty()) {
		std::string_view line = next_part(text, '\n');
		auto m = parse_migration(line);
		auto one = counted(line);

		must(one.lost_events == 0);
		must(one.migrated_in ==
		     (m && m->process == our_process && m->to == our_gpu ? m->pages
									 : 0));
		must(one.migrated_out ==
		     (m && m->process == our_process && m->from == our_gpu ? m->pages
									   : 0));
		must(!m || lower(line).contains(std::format("{:x})", m->pages)));
		in += one.migrated_in;
		out += one.migrated_out;
	}
	must(all.migrated_in == in && all.migrated_out == out);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	auto text = sluice::fuzz::text_at_the_edge(data, size);

	if (text.starts_with('\0'))
		written(text.substr(1));
	else
		read(text);
	return 0;
}
