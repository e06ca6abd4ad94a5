// Package e2e walks a real portal in a real browser, as its visitors do: with
// and without JavaScript, on a desk and on a phone. It also shows that nothing
// an outsider names, writes or answers runs as a script, and that every page
// holds its shape.
//
// It has tests only and knows nothing of how pages are made. Without chromium
// they are skipped, unless AGENTSITE_TEST_REQUIRE names it. E2E_SHOTS=DIR
// writes pictures of every page; AGENTSITE_TEST_A2A=PATH runs the a2a-go
// command line tool at PATH as the agent to be registered;
// AGENTSITE_TEST_AXE=PATH has axe-core, at PATH, look at the main pages.
package e2e
