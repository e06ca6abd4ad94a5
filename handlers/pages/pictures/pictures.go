// Package pictures loads a picture that a message names by its address, when a reader asks for it. The portal fetches
// it, so that the server of the picture learns nothing of the reader, and draws it anew, so that only pixels reach the
// browser.
package pictures

import (
	"cmp"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"agentsite/handlers/pages"
	"agentsite/handlers/pages/message"
	"agentsite/handlers/request"
	"agentsite/handlers/respond"
	"agentsite/internal/chat"
	"agentsite/internal/egress"
	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/limit"
	"agentsite/internal/picture"
)

const (
	// MaxBytes bounds a picture as its server sends it.
	MaxBytes = 8 << 20
	// Total bounds the time of a fetch.
	Total = 20 * time.Second

	maxSide    = 1280 // pixels of the longer side
	maxAddress = 2000 // bytes
	cacheBytes = 16 << 20
	// An account, or all guests of one network, may load fetchBurst pictures at once, then one every fetchEvery.
	// fetching is the number of fetches at the same time: of one account or network, and of all together, because each
	// takes up to MaxBytes of memory.
	fetchEvery  = 5 * time.Second
	fetchBurst  = 30
	maxReaders  = 10_000
	fetchingOne = 3
	fetchingAll = 12
)

// Pages answers with pictures. Create it with New.
type Pages struct {
	chat     *chat.Service
	site     *pages.Site
	messages *message.Renderer
	client   *http.Client
	cache    *picture.Cache // drawn pictures, by address
	readers  *limit.Keyed
	running  *limit.Concurrent
	slots    chan struct{}
	log      *slog.Logger
	drawing  chan struct{} // capacity 1, because drawing takes tens of MiB
}

// New returns Pages. rt must be a client that may dial addresses of strangers, and bound the answer by MaxBytes.
func New(chats *chat.Service, site *pages.Site, messages *message.Renderer, rt http.RoundTripper,
	log *slog.Logger) *Pages {
	return &Pages{chat: chats, site: site, messages: messages, log: log,
		client: &http.Client{Transport: rt}, cache: picture.NewCache(cacheBytes),
		readers: limit.New(fetchEvery, fetchBurst, maxReaders), running: limit.NewConcurrent(fetchingOne),
		slots: make(chan struct{}, fetchingAll), drawing: make(chan struct{}, 1)}
}

// Routes declares the route of the pictures. It is a POST, because it makes the portal contact another server.
func (p *Pages) Routes(r chi.Router) {
	r.Post("/chat/{id}/m/{seq}/picture", p.site.Page(p.showPicture))
}

// showPicture answers with the picture at the address in the form, and to a script with an error as JSON.
func (p *Pages) showPicture(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	err := p.sendPicture(w, r, actor)
	if err != nil && r.Header.Get("Accept") == "application/json" {
		respond.Error(w, r, p.log, err)
		return nil
	}
	return err
}

// sendPicture answers with the picture at the address in the form, if the message names it as one.
func (p *Pages) sendPicture(w http.ResponseWriter, r *http.Request, actor ident.Actor) error {
	in, err := request.Form(w, r)
	if err != nil {
		return err
	}
	seq, err := request.PathSeq(r)
	if err != nil {
		return err
	}
	m, err := p.chat.Message(r.Context(), actor, chi.URLParam(r, "id"), seq)
	if err != nil {
		return err
	}
	address := in.Get("url")
	if len(address) > maxAddress || !slices.Contains(p.messages.FindPictures(m), address) {
		return fault.Field("url", "this message names no picture at that address")
	}
	png, err := p.loadPicture(r.Context(), actor, address)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "image/png")
	h.Set("Content-Disposition", "inline")
	h.Set("Content-Length", strconv.Itoa(len(png)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
	w.Write(png) // an error means that the client has disconnected
	return nil
}

// loadPicture returns the picture at an address as PNG, within the bounds of the actor.
func (p *Pages) loadPicture(ctx context.Context, actor ident.Actor, address string) ([]byte, error) {
	if png, ok := p.cache.Get(address); ok {
		return png, nil
	}
	reader := string(actor.Kind) + " " + cmp.Or(actor.AddrGroup(), actor.ID)
	if wait, ok := p.readers.Allow(reader); !ok {
		return nil, fault.Limited(wait, "You loaded many pictures in a short time. Wait a moment.")
	}
	if !p.running.Begin(reader) {
		return nil, fault.Limited(time.Second, "Other pictures are still loading. Try again in a moment.")
	}
	defer p.running.End(reader)
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default: // Readers that wait for slow servers must not hold requests of others.
		return nil, fault.Limited(time.Second, "Many load pictures at this moment. Try again soon.")
	}
	data, err := p.fetchPicture(ctx, address)
	if err != nil {
		return nil, err
	}
	select {
	case p.drawing <- struct{}{}:
		defer func() { <-p.drawing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	png, err := picture.ScaleToFit(data, maxSide)
	switch {
	case picture.IsFaulty(err):
		return nil, fault.Wrap(fault.Invalid, err, "There is no picture that can be shown: %s.", err)
	case err != nil:
		return nil, err
	}
	p.cache.Put(address, png)
	return png, nil
}

// fetchPicture gets the data at an address. The request has no cookie, no referrer and no name of the reader.
func (p *Pages) fetchPicture(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fault.Field("url", "this is no address of a picture")
	}
	req.Header.Set("Accept", "image/png, image/jpeg, image/gif, image/webp")
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, fetchError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fault.New(fault.Unavailable, "The server of the picture answered with status %d.", resp.StatusCode)
	}
	if kind := resp.Header.Get("Content-Type"); strings.Contains(kind, "svg") || strings.HasPrefix(kind, "text/") {
		return nil, fault.New(fault.Invalid, "There is no picture at this address.")
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, MaxBytes+1))
	if err != nil {
		return nil, fetchError(ctx, err)
	}
	if len(data) > MaxBytes {
		return nil, fault.New(fault.Invalid, "The picture has more than %d MiB.", MaxBytes>>20)
	}
	return data, nil
}

// fetchError returns the error of a fetch for the reader.
func fetchError(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case egress.CodeOf(err) != "":
		return fault.Wrap(fault.Unavailable, err, "The picture could not be loaded: %s.", egress.Reason(err))
	}
	return fault.Wrap(fault.Unavailable, err, "The picture could not be loaded.")
}
