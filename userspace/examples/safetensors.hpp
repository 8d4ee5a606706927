// SPDX-License-Identifier: MIT
// The content of a safetensors file: 8 bytes with the length of the header, the header,
// which is JSON and has a place for each tensor, and the tensors, one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sluice/error.hpp>

namespace safetensors {

/// Bytes before the header, and the most that the format allows for the header.
inline constexpr uint64_t prefix_bytes = 8, most_header = 100'000'000;

struct tensor {
	std::string name, dtype;
	std::vector<uint64_t> shape;
	uint64_t begin = 0, size = 0; ///< bytes; from the beginning of the file
	std::string sha256;	      ///< from the metadata; empty: none
};

/// Bytes of the header of a file with @p file_size bytes. errc::input.
/// @param prefix its first prefix_bytes, or all there are
/// @param name the file, for errors
sluice::result<uint64_t> header_size(std::span<const std::byte> prefix,
				     uint64_t file_size, std::string_view name);

/// The tensors in the file, in the order in which they lie there. errc::input names the
/// tensor at fault.
sluice::result<std::vector<tensor>>
read_header(std::string_view header, uint64_t file_size, std::string_view name);

} // namespace safetensors
