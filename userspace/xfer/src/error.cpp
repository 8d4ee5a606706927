// SPDX-License-Identifier: MIT
#include "xfer/error.hpp"

#include <array>
#include <cstring>

namespace xfer {

namespace {

constexpr std::array names = {
	"system", "usage", "input", "device", "peer-lost", "peer-error",
	"protocol", "timeout", "corrupt",
};

} // namespace

const char *name(errc code) noexcept
{
	return names[static_cast<size_t>(code)];
}

errc errc_from_name(const std::string &name) noexcept
{
	for (size_t i = 0; i < names.size(); i++)
		if (name == names[i])
			return static_cast<errc>(i);
	return errc::peer_error;
}

Error system_error(const std::string &what, int error, errc code)
{
	return Error(code, what + ": " + std::strerror(error));
}

} // namespace xfer
