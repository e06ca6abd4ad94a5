package templates

// adminTabs are the tabs of the operator's pages.
var adminTabs = []struct{ name, label, href string }{
	{"overview", "Overview", "/admin"}, {"settings", "Settings", "/admin/settings"}, {"people", "People", "/admin/people"},
	{"invites", "Invites", "/admin/invites"}, {"agents", "Agents", "/admin/agents"},
	{"storage", "Storage", "/admin/storage"}, {"reports", "Reports", "/admin/reports"}, {"queue", "Queue", "/admin/queue"},
	{"hosting", "Hosting", "/admin/hosting"}, {"peers", "Portals", "/admin/peers"},
}
