// SPDX-License-Identifier: MIT
// What the model knows of the machine. Each member is a key of mi300x.toml, which
// says what it means and where it is from.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace sluice::timing {

// Nanoseconds, and bytes in a nanosecond, which are GB/s.
using Time = double;
using Rate = double;

struct Machine {
	Rate xgmi_link = 0, pcie_link = 0, engine = 0;
	double broadcast_rate = 0, swap_rate = 0;
	Time doorbell = 0, schedule = 0, indirect = 0, packet = 0;
	Time copy_latency = 0, sync_host = 0, sync_local = 0, poll = 0;
	Time interrupt = 0;
	Time host_submit = 0, host_packet = 0, host_store = 0, host_word = 0;
	Time host_instruction = 0, host_job = 0;

	// From a doorbell that has arrived to the first packet.
	Time fetch() const { return schedule - doorbell; }
};

struct Parameter {
	std::string_view key, unit;
	double Machine::*value;
};

constexpr std::array<Parameter, 20> parameters{{
	{"xgmi_link", "GB/s", &Machine::xgmi_link},
	{"pcie_link", "GB/s", &Machine::pcie_link},
	{"engine", "GB/s", &Machine::engine},
	{"broadcast_rate", "ratio", &Machine::broadcast_rate},
	{"swap_rate", "ratio", &Machine::swap_rate},
	{"doorbell", "ns", &Machine::doorbell},
	{"schedule", "ns", &Machine::schedule},
	{"indirect", "ns", &Machine::indirect},
	{"packet", "ns", &Machine::packet},
	{"copy_latency", "ns", &Machine::copy_latency},
	{"sync_host", "ns", &Machine::sync_host},
	{"sync_local", "ns", &Machine::sync_local},
	{"poll", "ns", &Machine::poll},
	{"interrupt", "ns", &Machine::interrupt},
	{"host_submit", "ns", &Machine::host_submit},
	{"host_packet", "ns", &Machine::host_packet},
	{"host_store", "ns", &Machine::host_store},
	{"host_word", "ns", &Machine::host_word},
	{"host_instruction", "ns", &Machine::host_instruction},
	{"host_job", "ns", &Machine::host_job},
}};

// What a parameter rests on, in the order of parameters.
struct Note {
	std::string basis, source;
};

struct MachineFile {
	Machine machine;
	std::array<Note, parameters.size()> notes;
};

// Throws std::runtime_error that names the parameter and what is wrong with it.
MachineFile parse_machine(std::string_view text, std::string_view name);
MachineFile read_machine(const std::string &path);
// mi300x.toml, as it was when this was built.
MachineFile mi300x();

} // namespace sluice::timing
