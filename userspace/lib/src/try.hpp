// SPDX-License-Identifier: MIT
#pragma once

#include <utility>

#define SLUICE_JOIN2(a, b) a##b
#define SLUICE_JOIN(a, b) SLUICE_JOIN2(a, b)

/// declare what a result holds, or return its error: SLUICE_TRY(auto fd, open(path));
#define SLUICE_TRY(declaration, expression) \
	auto SLUICE_JOIN(tried_, __LINE__) = (expression); \
	if (!SLUICE_JOIN(tried_, __LINE__)) \
		return std::unexpected( \
			std::move(SLUICE_JOIN(tried_, __LINE__).error())); \
	declaration = *std::move(SLUICE_JOIN(tried_, __LINE__))

/// The same for a result<void>.
#define SLUICE_CHECK(expression) \
	do { \
		if (auto checked = (expression); !checked) \
			return std::unexpected(std::move(checked.error())); \
	} while (false)
