// SPDX-License-Identifier: MIT
#include "firmware.hpp"

#include "regs.hpp"

#include <array>
#include <initializer_list>
#include <numeric>

namespace sluice::emu {

namespace {

// Little-endian, byte by byte: the layout is the file's, not the compiler's.
class Writer {
public:
	std::vector<u8> data;

	Writer &put(u64 value, unsigned width)
	{
		for (unsigned i = 0; i < width; i++)
			data.push_back(static_cast<u8>(value >> 8 * i));
		return *this;
	}
	Writer &u16s(std::initializer_list<u32> values)
	{
		for (u32 v : values)
			put(v, 2);
		return *this;
	}
	Writer &u32s(std::initializer_list<u32> values)
	{
		for (u32 v : values)
			put(v, 4);
		return *this;
	}
	Writer &zeros(size_t n)
	{
		data.resize(data.size() + n);
		return *this;
	}
	Writer &add(const std::vector<u8> &other)
	{
		data.insert(data.end(), other.begin(), other.end());
		return *this;
	}
};

struct Ip {
	u32 hardware_id, instance;
	std::array<u8, 3> version;
	std::vector<u32> bases;
};

constexpr u32 binary_magic = 0x28211407, discovery_magic = 0x53445049,
	      gc_magic = 0x4347, harvest_magic = 0x56524148, mall_magic = 0x4c4c414d;
constexpr u32 binary_header_size = 60, discovery_header_size = 80;
constexpr u32 tables = 6;
constexpr u32 memory_channels = 32, mall_size = 256 << 20;

std::vector<Ip> blocks(unsigned engines)
{
	std::vector<Ip> ips{
		{11, 0, {9, 4, 3}, {reg::gc0, reg::gc1}},
		{35, 0, {1, 8, 0}, {reg::athub, reg::athub}},
		{41, 0, {4, 4, 2}, {reg::hdp}},
		{40, 0, {4, 4, 2}, {reg::oss}},
		{46, 0, {4, 5, 0}, {0x7000}},
		{4, 0, {13, 0, 3}, {0x16800, 0x16c00}},
		// a version the driver knows nothing about: no PSP features
		{255, 0, {13, 0, 99}, {0x16000, 0x16000, 0x16000}},
	};
	for (u32 d = 0; d * reg::engines_per_die < engines; d++) {
		// the dies share one set: what differs goes by SMN address
		ips.push_back(
			{108,
			 d,
			 {7, 9, 0},
			 {0, 0x14, reg::nbio2, 0x10400, 0, 0x60000, 0, 0, 0x70000}});
		ips.push_back({34, d, {1, 8, 0}, {reg::mmhub_base(d)}});
	}
	for (u32 e = 0; e < engines; e++)
		ips.push_back({42, e, {4, 4, 2}, {reg::sdma_base(e)}});
	// the driver counts them; that version has no RAS features
	for (u32 m = 0; m < memory_channels; m++)
		ips.push_back({150, m, {12, 0, 99}, {}});
	return ips;
}

u32 checksum(const std::vector<u8> &data)
{
	return std::accumulate(data.begin(), data.end(), 0u) & 0xffff;
}

std::vector<u8> ip_table(unsigned engines)
{
	std::vector<Ip> ips = blocks(engines);
	Writer die, table;

	die.u16s({0, static_cast<u32>(ips.size())});
	for (const Ip &ip : ips) {
		die.put(ip.hardware_id, 2).put(ip.instance, 1);
		die.put(ip.bases.size(), 1);
		for (u8 v : ip.version)
			die.put(v, 1);
		die.put(0, 1);
		for (u32 b : ip.bases)
			die.put(b, 4);
	}
	u32 size = discovery_header_size + static_cast<u32>(die.data.size());
	table.u32s({discovery_magic}).u16s({4, size}).u32s({0}).u16s({1});
	table.u16s({0, binary_header_size + discovery_header_size});
	table.zeros(discovery_header_size - table.data.size());
	return table.add(die.data).data;
}

// Four shader engines of ten compute units each: one die of the real part. KFD
// reports them to its users, with the caches and the wavefronts.
std::vector<u8> gc_table()
{
	Writer w;

	w.u32s({gc_magic}).u16s({2, 1}).u32s({108});
	w.u32s({4, 10, 1, 1, 16});	   // engines, CUs, arrays, RBs, L2 channels
	w.u32s({256, 32, 32, 1792, 0, 1}); // for graphics
	w.u32s({64, 8, 32, 64, 1, 1});	   // wavefront, waves, scratch, LDS in KB
	// L1 of each CU, ports, CUs that share the scalar caches, the sizes of
	// those for code and data, L2; in KB
	return w.u32s({10, 32, 16, 2, 64, 16, 4096}).data;
}

// A memory channel's share of the last level cache.
std::vector<u8> mall_table()
{
	Writer w;

	w.u32s({mall_magic}).u16s({2, 0}).u32s({48});
	return w.u32s({mall_size / memory_channels}).zeros(32).data;
}

std::vector<u8> harvest_table()
{
	Writer w;

	return w.u32s({harvest_magic, 0}).zeros(128).data;
}

std::vector<u8> firmware(u32 major, u32 minor, u32 version,
			 const std::vector<u8> &extra, u32 code_size)
{
	u32 header = 32 + static_cast<u32>(extra.size());
	Writer w;

	w.u32s({header + code_size, header}).u16s({major, minor, 0, 0});
	w.u32s({version, code_size, header, 0});
	return w.add(extra).zeros(code_size).data;
}

std::vector<u8> words(std::initializer_list<u32> values, unsigned total)
{
	Writer w;

	w.u32s(values);
	return w.zeros(std::size_t{4} * total - w.data.size()).data;
}

} // namespace

std::vector<u8> make_discovery(unsigned engines)
{
	Writer list, out;
	u32 offset = binary_header_size;
	Writer body;

	// nothing about video engines, which are absent
	for (const auto &t : {ip_table(engines), gc_table(), harvest_table(),
			      std::vector<u8>{}, mall_table()}) {
		u32 size = static_cast<u32>(t.size());
		list.u16s({size ? offset : 0, checksum(t), size, 0});
		body.add(t);
		offset += size;
	}
	list.zeros(std::size_t{8} * tables - list.data.size());
	Writer summed;
	summed.u16s({offset}).add(list.data).add(body.data);
	out.u32s({binary_magic}).u16s({1, 0, checksum(summed.data)});
	return out.add(summed.data).data;
}

std::vector<File> make_firmware(unsigned engines)
{
	return {
		{"ip_discovery.bin", make_discovery(engines)},
		// feature version 31
		{"sdma_4_4_2.bin", firmware(1, 0, 1, words({31}, 4), 256)},
		{"gc_9_4_3_mec.bin", firmware(1, 0, 1, words({1}, 3), 4096)},
		{"gc_9_4_3_rlc.bin", firmware(2, 0, 1, words({1}, 18), 256)},
	};
}

} // namespace sluice::emu
