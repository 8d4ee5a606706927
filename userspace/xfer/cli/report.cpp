// SPDX-License-Identifier: MIT
#include "report.hpp"

#include <format>

#include <nlohmann/json.hpp>

namespace xfer {

namespace {

std::string size_text(uint64_t bytes)
{
	if (bytes && bytes % (1 << 20) == 0)
		return std::format("{} MiB", bytes >> 20);
	if (bytes && bytes % (1 << 10) == 0)
		return std::format("{} KiB", bytes >> 10);
	return std::format("{} B", bytes);
}

std::string row(const std::string &name, const std::string &value)
{
	return std::format("  {:<20}{}\n", name, value);
}

std::string pair(const std::string &name, const std::string &sender,
		 const std::string &receiver)
{
	return std::format("  {:<20}{:<20}{}\n", name, sender, receiver);
}

std::string registration(const SideStats &side)
{
	return side.on_demand ? "on demand" : "pinned";
}

// System memory has neither alias nor migration: no number is not zero.
std::string pages(const SideStats &side, uint64_t count)
{
	return side.memory == "system" ? "-" : std::to_string(count);
}

std::string pages_row(const std::string &name, const Report &r,
		      uint64_t SideStats::*count)
{
	return pair(name, pages(r.sender, r.sender.*count),
		    pages(r.receiver, r.receiver.*count));
}

nlohmann::ordered_json side_json(const SideStats &side)
{
	nlohmann::ordered_json j = {
		{"memory", side.memory},
		{"registration", side.on_demand ? "odp" : "pinned"},
	};

	if (side.memory != "system") {
		j["pages_by_alias"] = side.by_alias;
		j["migrations"] = side.migrations;
		j["fallbacks"] = side.fallbacks;
	}
	return j;
}

} // namespace

void SideStats::to(Message &message) const
{
	message.set("memory", memory).set("odp", on_demand)
	       .set("by_alias", by_alias).set("migrations", migrations)
	       .set("fallbacks", fallbacks);
}

result<SideStats> SideStats::from(const Message &message)
{
	SideStats side;
	auto memory = message.string("memory");
	auto odp = message.number("odp", 1);
	auto by_alias = message.number("by_alias");
	auto migrations = message.number("migrations");
	auto fallbacks = message.number("fallbacks");

	if (!memory)
		return std::unexpected(memory.error());
	for (const auto *field : {&odp, &by_alias, &migrations, &fallbacks})
		if (!*field)
			return std::unexpected(field->error());
	side.memory = *memory;
	side.on_demand = *odp;
	side.by_alias = *by_alias;
	side.migrations = *migrations;
	side.fallbacks = *fallbacks;
	return side;
}

double Report::rate() const
{
	return transfer_s > 0 ? static_cast<double>(bytes) / transfer_s / 1e6 : 0;
}

std::string Report::table() const
{
	std::string t;

	t += row("file", file);
	t += row("bytes", std::to_string(bytes));
	t += row("chunks", std::format("{} of {}", chunks, size_text(chunk_size)));
	t += row("pieces", std::format("{} of at most {}", pieces,
				       size_text(piece_size)));
	t += row("RDMA time", std::format("{:.3f} s", transfer_s));
	t += row("RDMA throughput", std::format("{:.1f} MB/s", rate()));
	t += row("whole time", std::format(
		"{:.3f} s (read {:.3f}, to device {:.3f}, verify {:.3f})",
		total_s, read_s, to_device_s, verify_s));
	t += row("in flight", std::format("{} at most, {:.1f} on average; "
					  "depth {}, credits {}", in_flight_max,
					  in_flight_mean, depth, credits));
	t += row("stalls for credit", std::format("{} ({:.3f} s)", stalls,
						  stalled_s));
	t += "\n" + pair("", "sender", "receiver");
	t += pair("memory", sender.memory, receiver.memory);
	t += pair("registration", registration(sender), registration(receiver));
	t += pages_row("pages by alias", *this, &SideStats::by_alias);
	t += pages_row("migrations", *this, &SideStats::migrations);
	t += pages_row("fallbacks", *this, &SideStats::fallbacks);
	t += "\n" + row("SHA-256", sha256);
	t += row("computed by", verified_by);
	return t;
}

std::string Report::json() const
{
	nlohmann::ordered_json j = {
		{"file", file},
		{"bytes", bytes},
		{"chunks", chunks},
		{"chunk_bytes", chunk_size},
		{"pieces", pieces},
		{"piece_bytes", piece_size},
		{"depth", depth},
		{"credits", credits},
		{"seconds", {{"total", total_s}, {"read", read_s},
			     {"to_device", to_device_s},
			     {"rdma", transfer_s}, {"verify", verify_s},
			     {"stalled", stalled_s}}},
		{"rdma_mb_per_s", rate()},
		{"stalls", stalls},
		{"in_flight", {{"max", in_flight_max}, {"mean", in_flight_mean}}},
		{"sender", side_json(sender)},
		{"receiver", side_json(receiver)},
		{"sha256", sha256},
		{"verified_by", verified_by},
	};

	return j.dump(2) + "\n";
}

} // namespace xfer
