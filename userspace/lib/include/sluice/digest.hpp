// SPDX-License-Identifier: MIT
// Checksums and digests to compare data by.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sluice/error.hpp"

namespace sluice {

using sha256_digest = std::array<std::byte, 32>;

/// 64 lower case hexadecimal digits.
std::string to_string(const sha256_digest &digest);

/// CRC-32C (Castagnoli) of @p data, as iSCSI and RDMA protocols use it.
/// @param before the CRC of what precedes @p data, 0 at the beginning
uint32_t crc32c(std::span<const std::byte> data, uint32_t before = 0) noexcept;

/// SHA-256 of what is added piece by piece.
class sha256 {
public:
	sha256();
	sha256(sha256 &&) noexcept;
	sha256 &operator=(sha256 &&) noexcept;
	~sha256();

	void add(std::span<const std::byte> data) noexcept;
	/// The digest of all that was added so far; more may be added.
	sha256_digest digest() const noexcept;

private:
	struct state;
	std::unique_ptr<state> state_;
};

} // namespace sluice
