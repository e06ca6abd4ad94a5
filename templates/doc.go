// Package templates turns view models into the portal's pages: one component per page, and the
// shared parts of the pages.
//
// It does no I/O and does not depend on the domain: a view model has exactly the fields that a page
// shows, already formatted. A handler builds Page and the page's view, puts the CSP nonce into the
// context with templ.WithNonce, and renders into a buffer. With TEMPLATES_PREVIEW_DIR set, the
// tests write every page and its files to that folder. Every page works without JavaScript, and no
// page has an inline script, style or handler, because the Content-Security-Policy refuses them.
package templates
