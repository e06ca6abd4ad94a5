// Package templates turns view models into the portal's pages: one component per page, and the shared
// parts they are made of.
//
// It does no I/O and does not depend on the domain: a view model has exactly the fields a page shows,
// already formatted. A handler builds Page and the page's view, puts the CSP nonce into the context
// with templ.WithNonce, and renders into a buffer. With TEMPLATES_PREVIEW_DIR set, the tests write
// every page and its files to that folder. Every page works without JavaScript; no page has an inline
// script, style or handler.
package templates
