// SPDX-License-Identifier: MIT
#include "sluice/digest.hpp"

#include <exception>

#include <isa-l/crc.h>
#include <openssl/evp.h>

namespace sluice {

std::string to_string(const sha256_digest &digest)
{
	std::string text;

	for (std::byte b : digest)
		text += std::format("{:02x}", static_cast<unsigned>(b));
	return text;
}

// isa-l's function inverts neither its start nor its result, and takes an int.
uint32_t crc32c(std::span<const std::byte> data, uint32_t before) noexcept
{
	constexpr size_t at_once = size_t{1} << 30;
	uint32_t crc = ~before;

	while (!data.empty()) {
		auto part = data.first(std::min(data.size(), at_once));
		auto *bytes = reinterpret_cast<const unsigned char *>(part.data());

		crc = ::crc32_iscsi(const_cast<unsigned char *>(bytes),
				    static_cast<int>(part.size()), crc);
		data = data.subspan(part.size());
	}
	return ~crc;
}

struct sha256::state {
	EVP_MD_CTX *running = ::EVP_MD_CTX_new();
	EVP_MD_CTX *copy = ::EVP_MD_CTX_new();

	~state()
	{
		::EVP_MD_CTX_free(running);
		::EVP_MD_CTX_free(copy);
	}
};

// Only memory can be missing here.
static void must(bool done) noexcept
{
	if (!done)
		std::terminate();
}

sha256::sha256() : state_(std::make_unique<state>())
{
	must(::EVP_DigestInit_ex(state_->running, ::EVP_sha256(), nullptr) == 1);
	// Now, so that digest() allocates nothing.
	must(::EVP_MD_CTX_copy_ex(state_->copy, state_->running) == 1);
}

sha256::sha256(sha256 &&) noexcept = default;
sha256 &sha256::operator=(sha256 &&) noexcept = default;
sha256::~sha256() = default;

void sha256::add(std::span<const std::byte> data) noexcept
{
	must(::EVP_DigestUpdate(state_->running, data.data(), data.size()) == 1);
}

sha256_digest sha256::digest() const noexcept
{
	sha256_digest out;

	must(::EVP_MD_CTX_copy_ex(state_->copy, state_->running) == 1 &&
	     ::EVP_DigestFinal_ex(state_->copy,
				  reinterpret_cast<unsigned char *>(out.data()),
				  nullptr) == 1);
	return out;
}

} // namespace sluice
