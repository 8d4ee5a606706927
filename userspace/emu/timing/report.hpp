// SPDX-License-Identifier: MIT
// Tables for people. Each says that its figures are those of a model.
#pragma once

#include "machine.hpp"
#include "simulate.hpp"

#include <string>

namespace sluice::timing {

std::string model_heading(std::string_view what);
// "goal WHAT: met", or "MISSED".
std::string goal(std::string_view what, bool met);
std::string cells_table(const Machine &m); // beside DMA-Latte's speed-ups
std::string winners_table(const Machine &m);
std::string phases_table(const Machine &m);
std::string
batches_table(const Machine &m);	   // the same collectives by the kernel's plan
std::string fetch_table(const Machine &m); // beside vLLM's
// As SVG: speed-ups by size, of the model and of DMA-Latte.
std::string speedup_plot(const Machine &m);
std::string parameters_table(const MachineFile &f);
std::string batches_of(const Program &p, const Result &r);

} // namespace sluice::timing
