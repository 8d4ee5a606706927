// SPDX-License-Identifier: MIT
#include "trace_text.hpp"

#include "number.hpp"

namespace sluice::cli {

namespace {

using namespace std::string_view_literals;

std::string_view trimmed(std::string_view text)
{
	size_t first = text.find_first_not_of(" \t\n");

	if (first == text.npos)
		return {};
	return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// Parses "12.345678" seconds into whole microseconds, without rounding. A double has 53
/// bits, which are 285 years.
bool parse_time(std::string_view text, double &us)
{
	constexpr uint64_t most = (uint64_t{1} << 53) / 1'000'000;
	size_t dot = text.find('.');
	uint64_t seconds = 0, rest = 0;

	if (dot == text.npos || text.size() - dot != 7 ||
	    !parse_number(text.substr(0, dot), seconds) ||
	    !parse_number(text.substr(dot + 1), rest) || seconds >= most)
		return false;
	us = static_cast<double>(seconds * 1'000'000 + rest);
	return true;
}

/// "a=1 b=2", or "a 1".
void add_fields(std::string_view part, trace_event &to)
{
	if (part.find('=') == part.npos) {
		size_t space = part.find(' ');

		if (space != part.npos)
			to.fields.emplace_back(part.substr(0, space),
					       trimmed(part.substr(space)));
		return;
	}
	while (!part.empty()) {
		size_t end = std::min(part.find(' '), part.size());
		std::string_view word = part.substr(0, end);

		if (size_t is = word.find('='); is != word.npos)
			to.fields.emplace_back(word.substr(0, is), word.substr(is + 1));
		part = trimmed(part.substr(end));
	}
}

void split_fields(std::string_view text, trace_event &to)
{
	while (!text.empty()) {
		size_t end = std::min(text.find(','), text.size());

		add_fields(trimmed(text.substr(0, end)), to);
		text.remove_prefix(std::min(end + 1, text.size()));
	}
}

/// "comm-123": a name may have dashes, too.
bool parse_task(std::string_view text, trace_event &to)
{
	size_t dash = text.rfind('-');

	if (dash == text.npos || !parse_number(text.substr(dash + 1), to.pid))
		return false;
	to.task = text.substr(0, dash);
	return true;
}

} // namespace

std::string_view trace_event::field(std::string_view key) const
{
	for (const auto &[its_key, value] : fields)
		if (its_key == key)
			return value;
	return {};
}

std::optional<int64_t> trace_event::number(std::string_view key) const
{
	std::string_view value = field(key);
	int64_t n = 0;
	uint64_t hex = 0;

	if (value.starts_with("0x"sv))
		return parse_number(value.substr(2), hex, 16)
			       ? std::optional(static_cast<int64_t>(hex))
			       : std::nullopt;
	return parse_number(value, n) ? std::optional(n) : std::nullopt;
}

// "     comm-123     [001] d..1.   12.345678: name: what it says"
std::optional<trace_event> parse_trace_line(std::string_view line)
{
	trace_event e;
	size_t cpu = line.find(" [");
	size_t close = cpu == line.npos ? cpu : line.find("] ", cpu);

	if (line.starts_with('#') || close == line.npos ||
	    !parse_task(trimmed(line.substr(0, cpu)), e))
		return std::nullopt;
	std::string_view rest = line.substr(close + 2);
	size_t colon = rest.find(": ");
	size_t time = colon == rest.npos ? colon : rest.rfind(' ', colon);
	if (time == rest.npos ||
	    !parse_time(rest.substr(time + 1, colon - time - 1), e.us))
		return std::nullopt;
	rest.remove_prefix(colon + 2);
	size_t end = rest.find(':');
	if (end == rest.npos)
		return std::nullopt;
	e.name = trimmed(rest.substr(0, end));
	e.text = trimmed(rest.substr(end + 1));
	// Lines of the library begin with its name.
	std::string_view said = e.text;
	if (e.name == "tracing_mark_write" && said.starts_with("sluice: "sv)) {
		e.name = "sluice";
		said.remove_prefix(8);
	}
	split_fields(said, e);
	return e;
}

bool is_remark(std::string_view line)
{
	return line.empty() || line.starts_with('#') ||
	       line.find(" [LOST ") != line.npos;
}

uint64_t lost_events(std::string_view line)
{
	uint64_t n = 0;

	for (auto head : {"overrun: "sv, "commit overrun: "sv, "dropped events: "sv})
		if (line.starts_with(head) &&
		    parse_number(trimmed(line.substr(head.size())), n))
			return n;
	return 0;
}

} // namespace sluice::cli
