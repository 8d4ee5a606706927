// SPDX-License-Identifier: MIT
// Debian's build of Furo has no colours for a dark system, only for the dark theme: so
// the system's wish becomes that theme.
document.addEventListener("DOMContentLoaded", () => {
	const dark = window.matchMedia("(prefers-color-scheme: dark)");

	if (document.body.dataset.theme === "auto")
		document.body.dataset.theme = dark.matches ? "dark" : "light";
});
