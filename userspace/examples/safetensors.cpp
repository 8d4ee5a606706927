// SPDX-License-Identifier: MIT
#include "safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <format>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

namespace safetensors {

using nlohmann::json;
using sluice::errc;
using sluice::fail;
using sluice::result;

static_assert(std::endian::native == std::endian::little,
	      "the format is little-endian");

static const std::map<std::string, uint64_t> dtype_bytes = {
	{"BOOL", 1}, {"U8", 1},	 {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
	{"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
	{"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8},
};

result<uint64_t> header_size(std::span<const std::byte> prefix, uint64_t file_size,
			     std::string_view name)
{
	uint64_t size = 0;

	if (prefix.size() < prefix_bytes || file_size < prefix_bytes)
		return fail(
			errc::input, name,
			std::format(
				"it has {} bytes: too few for a safetensors file, which begins "
				"with {} that tell the length of its header",
				file_size, prefix_bytes));
	std::memcpy(&size, prefix.data(), sizeof(size));
	if (size > most_header)
		return fail(
			errc::input, name,
			std::format(
				"its header has {} bytes, and {} are allowed: is it a "
				"safetensors file?",
				size, most_header));
	if (size > file_size - prefix_bytes)
		return fail(
			errc::input, name,
			std::format("its header has {} bytes, and the whole file {}",
				    size, file_size));
	return size;
}

/// A list of non-negative numbers, or no value.
static std::optional<std::vector<uint64_t>> numbers(const json &entry, const char *key)
{
	auto found = entry.find(key);

	if (found == entry.end() || !found->is_array() ||
	    !std::ranges::all_of(*found, &json::is_number_unsigned))
		return {};
	return found->get<std::vector<uint64_t>>();
}

/// Bytes of a tensor, or no value if they exceed 64 bits.
static std::optional<uint64_t> bytes_of(uint64_t each,
					const std::vector<uint64_t> &shape)
{
	uint64_t all = each;

	// Look for a length of 0 first: the other lengths do not matter then.
	if (std::ranges::contains(shape, 0u))
		return 0;
	for (uint64_t length : shape)
		if (__builtin_mul_overflow(all, length, &all))
			return {};
	return all;
}

/// A tensor whose place is relative to the beginning of the data.
static result<tensor> read_tensor(const std::string &name, const json &entry)
{
	if (!entry.is_object() || !entry.contains("dtype") ||
	    !entry["dtype"].is_string())
		return fail(errc::input, name, "it has no dtype");
	auto shape = numbers(entry, "shape"), place = numbers(entry, "data_offsets");
	if (!shape)
		return fail(errc::input, name, "its shape is no list of lengths");
	if (!place || place->size() != 2 || place->front() > place->back())
		return fail(errc::input, name, "its data_offsets are no begin and end");

	tensor t{.name = name,
		 .dtype = entry["dtype"],
		 .shape = *shape,
		 .begin = place->front(),
		 .size = place->back() - place->front(),
		 .sha256 = {}};
	auto each = dtype_bytes.find(t.dtype);
	if (each == dtype_bytes.end())
		return fail(errc::input, name,
			    std::format("its dtype {} is not known", t.dtype));
	auto bytes = bytes_of(each->second, t.shape);
	if (!bytes || *bytes != t.size)
		return fail(
			errc::input, name,
			std::format(
				"it has {} bytes, which is not what its shape and {} make",
				t.size, t.dtype));
	return t;
}

/// Put them in order, and check that they fill the data without a gap.
static result<void> arrange(std::vector<tensor> &all, uint64_t data_size,
			    std::string_view name)
{
	uint64_t end = 0;

	std::ranges::sort(all, {},
			  [](const tensor &t) { return std::pair(t.begin, t.size); });
	for (const tensor &t : all) {
		if (t.begin != end)
			return fail(
				errc::input, t.name,
				std::format(
					"it begins at byte {} of the data, and the tensor before "
					"ends at {}",
					t.begin, end));
		end += t.size;
	}
	if (end != data_size)
		return fail(
			errc::input, name,
			std::format(
				"its tensors end at byte {} of the data, which are {} bytes",
				end, data_size));
	return {};
}

/// The digest of a tensor in the metadata, if there is one.
static std::string digest_of(const json &all, const std::string &name)
{
	auto metadata = all.find("__metadata__");

	if (metadata == all.end() || !metadata->is_object())
		return {};
	auto found = metadata->find("sha256:" + name);
	return found == metadata->end() || !found->is_string()
		       ? std::string()
		       : found->get<std::string>();
}

result<std::vector<tensor>> read_header(std::string_view header, uint64_t file_size,
					std::string_view name)
{
	const uint64_t data = prefix_bytes + header.size();
	auto all = json::parse(header, nullptr, false);
	std::vector<tensor> tensors;

	if (!all.is_object())
		return fail(errc::input, name, "its header is no JSON object");
	for (const auto &[key, entry] : all.items()) {
		if (key == "__metadata__")
			continue;
		auto t = read_tensor(key, entry);
		if (!t)
			return std::unexpected(t.error());
		t->sha256 = digest_of(all, key);
		tensors.push_back(std::move(*t));
	}
	if (auto good = arrange(tensors, file_size - data, name); !good)
		return std::unexpected(good.error());
	for (tensor &t : tensors)
		t.begin += data;
	return tensors;
}

} // namespace safetensors
