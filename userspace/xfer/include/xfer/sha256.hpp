// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <openssl/evp.h>

#include "xfer/error.hpp"

namespace xfer {

/// An incremental SHA-256.
class Sha256 {
public:
	/// Throws Error.
	Sha256();

	result<void> update(std::span<const std::byte> data);

	/// The digest of all updates, 64 lower case hexadecimal digits. The
	/// object cannot be used afterwards.
	result<std::string> hex();

private:
	struct Free {
		void operator()(EVP_MD_CTX *ctx) const { EVP_MD_CTX_free(ctx); }
	};
	std::unique_ptr<EVP_MD_CTX, Free> ctx_;
};

} // namespace xfer
