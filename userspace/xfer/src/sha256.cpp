// SPDX-License-Identifier: MIT
#include "xfer/sha256.hpp"

#include <array>
#include <format>

namespace xfer {

Sha256::Sha256() : ctx_(EVP_MD_CTX_new())
{
	if (!ctx_ || EVP_DigestInit_ex(ctx_.get(), EVP_sha256(), nullptr) != 1)
		throw Error(errc::system, "libcrypto has no SHA-256");
}

result<void> Sha256::update(std::span<const std::byte> data)
{
	if (EVP_DigestUpdate(ctx_.get(), data.data(), data.size()) != 1)
		return fail(errc::system, "SHA-256 failed");
	return {};
}

result<std::string> Sha256::hex()
{
	std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
	unsigned length = 0;
	std::string text;

	if (EVP_DigestFinal_ex(ctx_.get(), digest.data(), &length) != 1)
		return fail(errc::system, "SHA-256 failed");
	for (unsigned i = 0; i < length; i++)
		text += std::format("{:02x}", digest[i]);
	return text;
}

} // namespace xfer
