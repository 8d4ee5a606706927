// SPDX-License-Identifier: MIT
// The C API: what is in the machine, and the paths in it.
#include <cstdlib>

#include "c_api.hpp"
#include "sluice/topology.hpp"

using namespace sluice;
using namespace sluice::c;

struct sluice_topology {
	struct inside {
		topology it;
		std::vector<std::string> names;
	} it;
};

namespace {

using lines = std::vector<std::string>;

// Names of devices may be any bytes: those that are not ASCII are replaced.
std::string json_string(std::string_view text)
{
	std::string q = "\"";

	for (char c : text) {
		auto byte = static_cast<unsigned char>(c);

		if (byte == '"' || byte == '\\')
			q += {'\\', c};
		else if (byte < 0x20)
			q += std::format("\\u{:04x}", byte);
		else if (byte > 0x7e)
			q += "\\ufffd";
		else
			q += c;
	}
	return q + '"';
}

std::string json_list(const lines &all)
{
	std::string q;

	for (const std::string &line : all)
		q += (q.empty() ? "" : ", ") + json_string(line);
	return "[" + q + "]";
}

// The same keys as the program has, in the same order.
std::string json_of(std::string_view a, std::string_view b, const route &way)
{
	return std::format(
		"{{\n  \"between\": [{}, {}],\n  \"bytes_per_second\": {},\n"
		"  \"limit\": {},\n  \"not_known\": {},\n  \"path\": {},\n"
		"  \"remedies\": {},\n  \"steps\": {},\n  \"why_not_better\": {}\n}}\n",
		json_string(a), json_string(b),
		way.bytes_per_second > 0 ? std::format("{}", way.bytes_per_second)
					 : "null",
		json_string(way.limit), json_list(way.not_known),
		json_string(name(way.how)), json_list(way.remedies),
		json_list(way.steps), json_list(way.why_not_better));
}

std::string text_of(std::string_view a, std::string_view b, const route &way)
{
	std::string text = std::format("{} - {}: {}\n", a, b, name(way.how));
	auto add = [&text](std::string_view head, const lines &all) {
		for (const std::string &line : all)
			text += std::format("  {:<10}  {}\n", head, line);
	};

	add("step", way.steps);
	add("limit", {way.limit});
	add("because", way.why_not_better);
	add("not known", way.not_known);
	add("try", way.remedies);
	return text;
}

char *copy_of(const std::string &text)
{
	char *copy = ::strdup(text.c_str());

	if (!copy)
		throw std::bad_alloc();
	return copy;
}

} // namespace

int sluice_topology_read(const char *root, sluice_topology **to)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(given(to, "topology"));
		SLUICE_TRY(auto machine, topology::read(root ? root : "/"));
		std::vector<std::string> names;
		for (location where : machine.locations())
			names.push_back(machine.name_of(where));
		hand_out(to,
			 sluice_topology::inside{std::move(machine), std::move(names)});
		return {};
	});
}

void sluice_topology_free(sluice_topology *machine)
{
	delete machine;
}

const char *sluice_topology_name(const sluice_topology *machine, uint32_t index)
{
	if (!machine || index >= machine->it.names.size())
		return nullptr;
	return machine->it.names[index].c_str();
}

int sluice_topology_explain(const sluice_topology *machine, const char *a,
			    const char *b, int format, char **text)
{
	return guarded([&]() -> result<void> {
		SLUICE_CHECK(all_given("topology a b text", machine, a, b, text));
		const topology &all = machine->it.it;
		if (format != SLUICE_TEXT && format != SLUICE_JSON)
			return fail(errc::usage, "format",
				    std::format("{} is no enum sluice_format", format));
		SLUICE_TRY(auto from, all.find(a));
		SLUICE_TRY(auto to, all.find(b));
		SLUICE_TRY(auto way, all.explain(from, to));
		auto said = format == SLUICE_JSON ? json_of : text_of;
		*text = copy_of(said(all.name_of(from), all.name_of(to), way));
		return {};
	});
}
