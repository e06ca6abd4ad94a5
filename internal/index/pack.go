package index

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentsite/internal/hub"
)

// An agent is kept packed: a head of numbers, and all its texts one after the
// other, written with a codec. That takes a third of the memory of the agent
// itself and half a microsecond for each result of a page. Name, portal and
// id are not in it: the words of the index hold them as the key.

// The values that most agents have, as a number from 1.
var (
	kinds        = []string{string(hub.Builtin), string(hub.A2A), string(hub.MCP), string(hub.OpenAI), string(hub.Prompt), string(hub.Link)}
	visibilities = []string{string(hub.Public)}
	states       = []string{hub.Active, hub.Deprecated}
	lives        = []string{string(hub.Alive), string(hub.NeedsAuth), string(hub.WrongProtocol), string(hub.Unreachable), string(hub.Unknown)}
	proofs       = []string{hub.Hosted, hub.Proved, hub.Unproven, hub.Claimed}
)

// The groups of fields that only some agents have.
const (
	withOwner = 1 << iota
	withModes
	withConfig
	withIcon
	withLimits
	withProof
	withNotes
	withReason
)

// writer collects the head and the texts of an agent.
type writer struct{ head, text []byte }

func (w *writer) num(n int)    { w.head = binary.AppendVarint(w.head, int64(n)) }
func (w *writer) size(n int)   { w.head = binary.AppendUvarint(w.head, uint64(n)) }
func (w *writer) str(s string) { w.size(len(s)); w.text = append(w.text, s...) }
func (w *writer) time(t int64) { w.head = binary.AppendVarint(w.head, t) }

func (w *writer) flag(set bool) {
	b := byte(0)
	if set {
		b = 1
	}
	w.head = append(w.head, b)
}

func (w *writer) known(s string, list []string) {
	i := slices.Index(list, s)
	w.head = append(w.head, byte(i+1))
	if i < 0 {
		w.str(s)
	}
}

// strs keeps a list apart from none.
func (w *writer) strs(list []string) {
	if list == nil {
		w.size(0)
		return
	}
	w.size(len(list) + 1)
	for _, s := range list {
		w.str(s)
	}
}

// write appends the agent. All fields of hub.Agent are in it, or in the key,
// or in the times of the entry.
func (w *writer) write(a *hub.Agent) {
	groups := byte(0)
	for bit, set := range []bool{
		a.OwnerID != "" || a.OwnerName != "" || a.CoOwnerIDs != nil,
		a.InputModes != nil || a.OutputModes != nil || a.Languages != nil,
		a.Config != nil || a.HasSecret,
		a.Icon != "" || a.Publisher != "",
		a.Limits.Callers != "" || a.Limits.Listed != nil || a.Limits.PerMinute != 0 || a.Limits.PerDay != 0 || a.Limits.MaxBytes != 0 || a.EmbedOrigins != nil,
		a.Proof != hub.Proof{},
		a.Status.Message != "" || a.Status.Held || a.Note != "" || a.Author != "",
		a.Liveness.Reason != "",
	} {
		if set {
			groups |= 1 << bit
		}
	}
	w.head = append(w.head, groups)
	w.size(len(a.Name))
	if a.Portal != "" || a.Verified || a.Also != nil || a.Record != "" || a.PortalID != "" || a.NetworkID != "" {
		w.size(len(a.Portal)<<1 | 1)
		w.record(a)
	} else {
		w.size(0)
	}
	w.known(string(a.Kind), kinds)
	w.known(string(a.Visibility), visibilities)
	w.known(a.Status.State, states)
	w.known(string(a.Liveness.State), lives)
	w.time(nanos(a.Liveness.CheckedAt))
	w.time(int64(a.Liveness.Latency))
	w.num(a.Version)
	w.str(a.Title)
	w.str(a.Endpoint)
	w.str(a.Description)
	if groups&withOwner != 0 {
		w.str(a.OwnerID)
		w.str(a.OwnerName)
		w.strs(a.CoOwnerIDs)
	}
	if groups&withModes != 0 {
		w.strs(a.InputModes)
		w.strs(a.OutputModes)
		w.strs(a.Languages)
	}
	if groups&withConfig != 0 {
		w.flag(a.Config != nil)
		w.str(string(a.Config))
		w.flag(a.HasSecret)
	}
	if groups&withIcon != 0 {
		w.str(a.Icon)
		w.str(a.Publisher)
	}
	if groups&withLimits != 0 {
		w.str(a.Limits.Callers)
		w.strs(a.Limits.Listed)
		w.num(a.Limits.PerMinute)
		w.num(a.Limits.PerDay)
		w.num(a.Limits.MaxBytes)
		w.strs(a.EmbedOrigins)
	}
	if groups&withProof != 0 {
		w.known(a.Proof.State, proofs)
		w.str(a.Proof.Method)
		w.str(a.Proof.Origin)
		w.time(nanos(a.Proof.At))
		w.str(a.Proof.Publisher)
	}
	if groups&withNotes != 0 {
		w.str(a.Status.Message)
		w.flag(a.Status.Held)
		w.str(a.Note)
		w.str(a.Author)
	}
	if groups&withReason != 0 {
		w.str(a.Liveness.Reason)
	}
	if a.Skills == nil {
		w.size(0)
		return
	}
	w.size(len(a.Skills) + 1)
	for i := range a.Skills {
		s := &a.Skills[i]
		w.str(s.ID)
		w.str(s.Name)
		w.str(s.Description)
		w.strs(s.Tags)
		w.strs(s.Examples)
	}
}

// record writes what only agents of other portals have. The hash of a record
// is 32 bytes that no codec makes shorter.
func (w *writer) record(a *hub.Agent) {
	w.flag(a.Verified)
	w.strs(a.Also)
	w.str(a.PortalID)
	w.str(a.NetworkID)
	hash, err := base64.RawURLEncoding.Strict().DecodeString(a.Record)
	if err != nil || len(hash) != hashSize {
		w.flag(false)
		w.str(a.Record)
		return
	}
	w.flag(true)
	w.head = append(w.head, hash...)
}

const hashSize = 32

// reader is writer, reversed.
type reader struct {
	head, text string
	lists      []string // room for what strs returns
}

func (r *reader) size() int {
	n := uint64(0)
	for shift := 0; ; shift += 7 {
		b := r.head[0]
		r.head = r.head[1:]
		n |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return int(n)
		}
	}
}

func (r *reader) time() int64 {
	n := uint64(r.size())
	return int64(n>>1) ^ -int64(n&1)
}

func (r *reader) num() int { return int(r.time()) }

func (r *reader) byte() byte {
	b := r.head[0]
	r.head = r.head[1:]
	return b
}

func (r *reader) str() string {
	n := r.size()
	s := r.text[:n]
	r.text = r.text[n:]
	return s
}

func (r *reader) known(list []string) string {
	if i := r.byte(); i > 0 {
		return list[i-1]
	}
	return r.str()
}

// listRoom is how many texts of lists an agent has room for at once: most
// have two or three lists of few texts for each skill.
const listRoom = 12

func (r *reader) strs() []string {
	n := r.size()
	if n == 0 {
		return nil
	}
	if n--; n == 0 {
		return []string{}
	}
	if n > len(r.lists) {
		r.lists = make([]string, max(n, listRoom))
	}
	list := r.lists[:n:n]
	r.lists = r.lists[n:]
	for i := range list {
		list[i] = r.str()
	}
	return list
}

func (r *reader) read(a *hub.Agent, key string) {
	groups := r.byte()
	name := r.size()
	n := r.size()
	portal := name + 1 + n>>1
	a.Name, a.Portal, a.ID = key[:name], key[name+1:portal], key[portal+1:]
	if n&1 != 0 {
		a.Verified, a.Also, a.PortalID, a.NetworkID = r.byte() == 1, r.strs(), r.str(), r.str()
		if r.byte() == 0 {
			a.Record = r.str()
		} else {
			a.Record = base64.RawURLEncoding.EncodeToString([]byte(r.head[:hashSize]))
			r.head = r.head[hashSize:]
		}
	}
	a.Kind = hub.Kind(r.known(kinds))
	a.Visibility = hub.Visibility(r.known(visibilities))
	a.Status.State = r.known(states)
	a.Liveness.State = hub.Live(r.known(lives))
	a.Liveness.CheckedAt = fromNanos(r.time())
	a.Liveness.Latency = time.Duration(r.time())
	a.Version = r.num()
	a.Title, a.Endpoint, a.Description = r.str(), r.str(), r.str()
	if groups&withOwner != 0 {
		a.OwnerID, a.OwnerName, a.CoOwnerIDs = r.str(), r.str(), r.strs()
	}
	if groups&withModes != 0 {
		a.InputModes, a.OutputModes, a.Languages = r.strs(), r.strs(), r.strs()
	}
	if groups&withConfig != 0 {
		some, config := r.byte(), r.str()
		if some == 1 {
			a.Config = json.RawMessage(config)
		}
		a.HasSecret = r.byte() == 1
	}
	if groups&withIcon != 0 {
		a.Icon, a.Publisher = r.str(), r.str()
	}
	if groups&withLimits != 0 {
		a.Limits = hub.Limits{Callers: r.str(), Listed: r.strs(), PerMinute: r.num(), PerDay: r.num(), MaxBytes: r.num()}
		a.EmbedOrigins = r.strs()
	}
	if groups&withProof != 0 {
		a.Proof = hub.Proof{State: r.known(proofs), Method: r.str(), Origin: r.str(), At: fromNanos(r.time()), Publisher: r.str()}
	}
	if groups&withNotes != 0 {
		a.Status.Message = r.str()
		a.Status.Held = r.byte() == 1
		a.Note, a.Author = r.str(), r.str()
	}
	if groups&withReason != 0 {
		a.Liveness.Reason = r.str()
	}
	if n := r.size(); n > 0 {
		a.Skills = make([]hub.Skill, n-1)
		for i := range a.Skills {
			a.Skills[i] = hub.Skill{ID: r.str(), Name: r.str(), Description: r.str(), Tags: r.strs(), Examples: r.strs()}
		}
	}
}

// never stands for the zero time, before all others.
const never = math.MinInt64

// nanos is a time as a number that orders like it. Times that do not fit, out
// of 1678 to 2262, are cut to those that do.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return never
	case t.Year() < 1678:
		return never + 1
	case t.Year() > 2261:
		return math.MaxInt64
	}
	return t.UnixNano()
}

func fromNanos(n int64) time.Time {
	if n == never {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// packer packs agents with the codec that was learnt last. It learns from the
// first texts, and anew as the index grows, for what is put from then on.
type packer struct {
	codecs atomic.Pointer[[]*codec]

	mu     sync.Mutex // guards what follows
	sample []byte
	seen   int
}

const (
	sampleBytes = 32 << 10
	firstLesson = 256 // texts seen
	lessonEvery = 24  // times as many texts
	maxCodecs   = 4
)

// pack appends the agent, writing its texts as short as it can.
func (p *packer) pack(dst []byte, w *writer) []byte {
	p.note(w.text)
	number, start := 0, len(dst)
	dst = append(dst, 0)
	dst = binary.AppendUvarint(dst, uint64(len(w.head)))
	dst = append(dst, w.head...)
	if list := p.codecs.Load(); list != nil {
		number = len(*list)
		at := len(dst)
		dst = (*list)[number-1].encode(dst, w.text)
		if len(dst)-at < len(w.text) {
			dst[start] = byte(number)
			return dst
		}
		dst = dst[:at]
	}
	return append(dst, w.text...)
}

// note remembers a text for the next lesson.
func (p *packer) note(text []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*codec
	if l := p.codecs.Load(); l != nil {
		list = *l
	}
	if len(list) == maxCodecs {
		return
	}
	if len(p.sample) < sampleBytes {
		p.sample = append(p.sample, text[:min(len(text), sampleBytes-len(p.sample))]...)
	}
	due := firstLesson
	for range list {
		due *= lessonEvery
	}
	if p.seen++; p.seen < due || len(p.sample) == 0 {
		return
	}
	next := append(slices.Clone(list), learn(p.sample))
	p.sample = p.sample[:0]
	if len(next) == maxCodecs {
		p.sample = nil
	}
	p.codecs.Store(&next)
}

// unpack reads the agent but for its times into a, which is empty, with text
// in the memory of buf meanwhile.
func (p *packer) unpack(a *hub.Agent, key, packed string, buf *[]byte) {
	number := packed[0]
	r := reader{head: packed[1:]}
	n := r.size()
	rest := r.head[n:]
	r.head = r.head[:n]
	if number == 0 {
		r.text = rest
	} else {
		*buf = (*p.codecs.Load())[number-1].decode((*buf)[:0], rest)
		r.text = string(*buf)
	}
	r.read(a, key)
}
