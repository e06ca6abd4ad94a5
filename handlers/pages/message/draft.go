package message

import (
	"sync"

	"agentsite/handlers/markup"
	"agentsite/templates"
)

// Drafts renders the finished blocks of answers that are being written, each block once. Create it with NewDrafts.
type Drafts struct {
	markup *markup.Renderer

	mu     sync.Mutex // guards byTask
	byTask map[string]*markup.Blocks
}

// NewDrafts returns Drafts without an answer.
func (d *Renderer) NewDrafts() *Drafts {
	return &Drafts{markup: d.markup, byTask: make(map[string]*markup.Blocks)}
}

// maxDrafts bounds the kept states. An answer without its state is read from its beginning.
const maxDrafts = 512

// Advance returns the blocks of a task's answer that text finishes. before is the answer in front of text.
func (d *Drafts) Advance(task string, before []byte, text string) markup.Span {
	d.mu.Lock()
	b := d.byTask[task]
	delete(d.byTask, task) // no other goroutine uses it meanwhile
	d.mu.Unlock()
	if b == nil || len(before) == 0 || !b.Continues(before) {
		b = new(markup.Blocks)
		d.markup.Advance(b, string(before))
	}
	out := d.markup.Advance(b, text)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.byTask) >= maxDrafts {
		clear(d.byTask)
	}
	d.byTask[task] = b
	return out
}

// Drop removes the state of a task that ended.
func (d *Drafts) Drop(task string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.byTask, task)
}

// Split returns the answer so far in two parts: the finished blocks, and the text behind them.
func (d *Renderer) Split(text string) (finished templates.SafeHTML, open string) {
	var b markup.Blocks
	return d.markup.Advance(&b, text).HTML, b.Open()
}
