// SPDX-License-Identifier: MIT
// What "sluice run" tells libsluice-preload.so in the environment.
#pragma once

namespace sluice::preload {

inline constexpr auto gpu = "SLUICE_PRELOAD_GPU"; ///< where to; unset: move nothing
inline constexpr auto min = "SLUICE_PRELOAD_MIN"; ///< bytes; smaller memory stays
inline constexpr auto report = "SLUICE_PRELOAD_REPORT"; ///< set: report at the end

} // namespace sluice::preload
