package app_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"agentsite/internal/testing/apptest"
)

var pictures atomic.Uint32

// pushKey is a public key of a browser: the generator of P-256.
const pushKey = "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKWT-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"

// picture is one that nobody has sent yet.
func picture() string {
	n := pictures.Add(1)
	img := image.NewRGBA(image.Rect(0, 0, 8, 8))
	img.Set(0, 0, color.RGBA{byte(n), byte(n >> 8), byte(n >> 16), 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return b.String()
}

// stillRoom is a conversation that no row changes: those who may look at it,
// and those who may not do anything with it.
type stillRoom struct {
	id, seq, link string
	hash          string // of a file in the message
	secret        string // of a link to read it
}

func (w *world) stillRoom(t *testing.T) *stillRoom {
	w.quiet.Lock()
	defer w.quiet.Unlock()
	if w.still != nil {
		return w.still
	}
	owner := w.as["owner"].With(t)
	r := &stillRoom{id: w.room(t)}
	var f struct{ Hash, URL string }
	owner.Get(http.MethodPost, "/api/v1/files?name=a.png", picture(), http.StatusCreated, &f)
	var said struct{ Seq int64 }
	owner.Get(http.MethodPost, "/api/v1/conversations/"+r.id+"/messages", map[string]any{"client_id": "picture",
		"parts": []map[string]string{{"text": "2+2"}, {"url": f.URL, "filename": "a.png"}}}, http.StatusCreated, &said)
	r.hash, r.seq = f.Hash, fmt.Sprint(said.Seq)
	r.link, _ = w.link(t, r.id, "join")
	_, r.secret = w.link(t, r.id, "read")
	w.still = r
	return r
}

// link makes a link to a conversation of the owner.
func (w *world) link(t *testing.T, room, kind string) (id, secret string) {
	var l struct{ ID, URL string }
	w.as["owner"].With(t).Get(http.MethodPost, "/api/v1/conversations/"+room+"/links", map[string]any{"kind": kind}, http.StatusCreated, &l)
	return l.ID, l.URL[strings.LastIndexByte(l.URL, '/')+1:]
}

// roomFor is a conversation for the actor to try something with: one of its
// own for those who are in it.
func (w *world) roomFor(t *testing.T, actor string) *stillRoom {
	switch actor {
	case "reader", "member", "owner", "right":
		return &stillRoom{id: w.room(t)}
	}
	return w.stillRoom(t)
}

func fixedName(name string) func(*testing.T, *world, string) object {
	return func(*testing.T, *world, string) object { return object{name: name} }
}

// chatCells say what the routes around conversations are asked.
func chatCells() map[string]cell {
	fixed := func(v any) func(*world, object) any { return func(*world, object) any { return v } }
	room := func(t *testing.T, w *world, actor string) object {
		return object{id: w.roomFor(t, actor).id, handle: people["other"] + "x"}
	}
	said := func(t *testing.T, w *world, actor string) object {
		r := w.roomFor(t, actor)
		if r.seq == "" {
			r.seq = fmt.Sprint(w.as["owner"].With(t).Say(r.id, "2+2").Seq)
		}
		return object{id: r.id, seq: r.seq}
	}
	linked := func(t *testing.T, w *world, actor string) object {
		r := w.roomFor(t, actor)
		if r.link == "" {
			r.link, _ = w.link(t, r.id, "join")
		}
		return object{id: r.id, other: r.link}
	}
	invited := func(t *testing.T, w *world, _ string) object {
		_, secret := w.link(t, w.room(t), "join")
		return object{name: secret}
	}
	// A conversation of another person, to which the actor is invited or, of those without an account, the owner.
	asked := func(t *testing.T, w *world, actor string) object {
		host := w.p.User(t, apptest.Fresh("host"))
		return object{id: host.Conversation(cmp.Or(people[actor], people["owner"]))}
	}
	// These are not changed by who looks at them.
	calm := func(t *testing.T, w *world, _ string) object {
		r := w.stillRoom(t)
		return object{id: r.id, seq: r.seq}
	}
	file := func(t *testing.T, w *world, _ string) object { return object{name: w.stillRoom(t).hash} }
	shared := func(t *testing.T, w *world, _ string) object {
		r := w.stillRoom(t)
		return object{name: r.secret, hash: r.hash}
	}
	// A message before the reader came, whom the room shows nothing of before.
	past := func(t *testing.T, w *world, _ string) object {
		owner := w.as["owner"].With(t)
		id := owner.Conversation("calc", people["member"])
		owner.Say(id, "2+2")
		owner.Must(http.MethodPatch, "/api/v1/conversations/"+id, map[string]any{"past": "nothing"}, http.StatusOK)
		owner.Must(http.MethodPost, "/api/v1/conversations/"+id+"/members", map[string]any{"handle": people["reader"]}, http.StatusCreated)
		return object{id: id}
	}
	const conversation, message = "/api/v1/conversations/{id}", "/api/v1/conversations/{id}/messages/{seq}"
	prefs := map[string]any{"notify": "mentions", "quiet_from": "22:00", "quiet_to": "07:00", "zone": "UTC"}
	return map[string]cell{
		"GET /api/v1/conversations/search":            {query: "?q=hello"},
		"PATCH " + conversation + " [room]":           {object: room, body: fixed(map[string]any{"speaks": "nobody"})},
		"PATCH " + conversation + " [mine]":           {object: room, body: fixed(map[string]any{"pinned": true, "notify": "nothing"})},
		"GET " + message:                              {object: calm},
		"GET " + message + " [past]":                  {object: past},
		"PATCH " + message:                            {object: said, body: fixed(map[string]any{"text": "3+3"})},
		"DELETE " + message:                           {object: said},
		"GET " + message + "/edits":                   {object: calm},
		"PUT " + message + "/reactions/{emoji}":       {object: said},
		"DELETE " + message + "/reactions/{emoji}":    {object: said},
		"POST " + message + "/again":                  {object: said},
		"POST " + message + "/ask":                    {object: said, body: fixed(map[string]any{"text": "3+3"})},
		"POST " + conversation + "/branch":            {object: said, body: fixed(map[string]any{"seq": 1})},
		"PATCH " + conversation + "/members/{handle}": {object: room, body: fixed(map[string]any{"role": "reader"})},
		"GET " + conversation + "/links":              {object: calm},
		"POST " + conversation + "/links [read]":      {object: room, body: fixed(map[string]any{"kind": "read"})},
		"POST " + conversation + "/links [join]":      {object: room, body: fixed(map[string]any{"kind": "join", "role": "reader", "max_uses": 1, "life": "1h"})},
		"DELETE " + conversation + "/links/{link}":    {object: linked},
		"GET " + conversation + "/disclosures":        {object: calm},
		"POST " + conversation + "/disclosures":       {object: room, body: fixed(map[string]any{"agent": "calc", "share": "own"})},
		"POST " + conversation + "/typing":            {object: room},
		"GET /api/v1/live":                            {accept: "text/event-stream"},
		"GET /api/v1/join/{secret}":                   {object: invited},
		"POST /api/v1/join/{secret}":                  {object: invited},
		"GET /api/v1/shared/{secret}":                 {object: shared},
		"POST /api/v1/files":                          {query: "?name=a.png", body: func(*world, object) any { return picture() }},
		"GET /api/v1/files/{hash}":                    {object: file},
		"GET /api/v1/files/{hash}/preview":            {object: file},
		"GET /api/v1/account/chat":                    {},
		"POST " + conversation + "/accept":            {object: asked},
		"POST " + conversation + "/decline":           {object: asked},
		"POST /api/v1/conversations/leave":            {object: room, body: func(_ *world, o object) any { return map[string]any{"ids": []string{o.id}} }},
		"PUT /api/v1/blocks/{person}":                 {object: fixedName(people["other"] + "x")},
		"DELETE /api/v1/blocks/{person}":              {object: fixedName(people["other"] + "x")},
		"PUT /api/v1/account/chat":                    {body: fixed(prefs)},

		"POST /chat/{id}/accept":  {object: asked, body: fixed(form())},
		"POST /chat/{id}/decline": {object: asked, body: fixed(form())},
		"POST /chat/leave":        {object: room, body: func(_ *world, o object) any { return form("id", o.id) }},
		"POST /account/block":     {body: fixed(form("person", people["other"]+"x"))},
		"POST /account/unblock":   {body: fixed(form("person", people["other"]+"x"))},

		"GET /chat/{id}/rows":                       {object: calm},
		"GET /chat/{id}/m/{seq}":                    {object: calm},
		"POST /chat/{id}/m/{seq}/edit":              {object: said, body: fixed(form("text", "3+3"))},
		"POST /chat/{id}/m/{seq}/ask":               {object: said, body: fixed(form("text", "3+3"))},
		"POST /chat/{id}/m/{seq}/unsay":             {object: said, body: fixed(form())},
		"POST /chat/{id}/m/{seq}/picture":           {object: said, body: fixed(form("url", "https://example.org/x.png"))},
		"POST /chat/{id}/m/{seq}/react":             {object: said, body: fixed(form("emoji", "👍"))},
		"POST /chat/{id}/m/{seq}/again":             {object: said, body: fixed(form())},
		"POST /chat/{id}/m/{seq}/branch":            {object: said, body: fixed(form())},
		"POST /chat/{id}/role":                      {object: room, body: fixed(form("member", people["other"]+"x", "role", "reader"))},
		"POST /chat/{id}/pin":                       {object: room, body: fixed(form())},
		"POST /chat/{id}/archive":                   {object: room, body: fixed(form())},
		"POST /chat/{id}/ask-again":                 {object: room, body: fixed(form())},
		"POST /chat/{id}/notify":                    {object: room, body: fixed(form("notify", "mentions"))},
		"GET /chat/{id}/settings":                   {object: calm},
		"POST /chat/{id}/settings":                  {object: room, body: fixed(form("form", "room", "speaks", "nobody"))},
		"POST /chat/{id}/links [read]":              {object: room, body: fixed(form("kind", "read"))},
		"POST /chat/{id}/links [join]":              {object: room, body: fixed(form("kind", "join"))},
		"POST /chat/{id}/unlink":                    {object: linked, body: func(_ *world, o object) any { return form("link", o.other) }},
		"GET /join/{secret}":                        {object: invited},
		"POST /join/{secret}":                       {object: invited, body: fixed(form())},
		"GET /shared/{secret}":                      {object: shared},
		"GET /shared/{secret}/files/{hash}":         {object: shared},
		"GET /shared/{secret}/files/{hash}/preview": {object: shared},
		"GET /files/{hash}":                         {object: file},
		"GET /files/{hash}/preview":                 {object: file},
		"POST /account/profile":                     {body: fixed(form("display_name", "A. Person"))},
		"POST /account/theme":                       {body: fixed(form("theme", "dark"))},
		"POST /account/notices":                     {body: fixed(form("notice", "mention"))},
		"POST /account/push":                        {body: fixed(form("endpoint", "https://push.example/a", "p256dh", pushKey, "auth", "AAAAAAAAAAAAAAAAAAAAAA"))},
		"POST /account/push/end":                    {body: fixed(form())},
		"GET /push-worker.js":                       {},
		"GET /people/{name}": {object: func(t *testing.T, w *world, actor string) object {
			return object{name: "nobody-at-all"}
		}},
		"GET /people/{name}/picture": {object: func(t *testing.T, w *world, actor string) object {
			return object{name: "nobody-at-all"}
		}},
		"POST /account/chat": {body: fixed(form("notify", "mentions", "quiet_from", "22:00", "quiet_to", "07:00", "zone", "Europe/Berlin"))},
	}
}
