package record

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"
)

// Limits of a Live record.
const (
	// MaxWords is the number of liveness reports in one record: 8 KiB with the other fields.
	MaxWords = 500
	// MaxShard is the largest number of digits of a shard: 4096 shards are enough for a million agents
	// of one portal.
	MaxShard = 3
	// MaxAgo is the greatest age of an observation in a new record.
	MaxAgo = 48 * time.Hour

	agentTagLen = 9
	wordLen     = 12
)

// Reach is the liveness of an agent in a report.
type Reach uint8

// The values of Reach; lower is better. 0 is no result.
const (
	Alive Reach = 1 + iota
	NeedsAuth
	WrongProtocol
	Unreachable
)

// String returns alive, needs_auth, wrong_protocol or unreachable.
func (r Reach) String() string {
	if r < Alive || r > Unreachable {
		return "unknown"
	}
	return [...]string{"alive", "needs_auth", "wrong_protocol", "unreachable"}[r-Alive]
}

// ReachOf is the inverse of Reach.String; 0 for any other text.
func ReachOf(s string) Reach {
	for r := Alive; r <= Unreachable; r++ {
		if r.String() == s {
			return r
		}
	}
	return 0
}

// AgentTag is the beginning of an agent's key, long enough to distinguish the agents of one portal.
type AgentTag [agentTagLen]byte

// TagOf returns the tag of an agent's id, in the form of AgentID.
func TagOf(agentID string) AgentTag {
	k := AgentKey(agentID)
	return AgentTag(k[:agentTagLen])
}

// Shard returns the shard that contains the agent: the beginning of the tag, as many hexadecimal digits as given.
func (t AgentTag) Shard(digits int) string {
	const hex = "0123456789abcdef"
	b := make([]byte, digits)
	for i := range b {
		b[i] = hex[t[i/2]>>(4-4*(i%2))&15]
	}
	return string(b)
}

// Live holds the liveness reports of a portal about agents of one portal, itself or another: the
// results of its own exchanges, probes and calls. It is only a claim; each reader decides how much
// the reports of a portal count.
type Live struct {
	Header
	Subject PortalID `json:"subject"` // portal of the agents
	// Shard is 0 to MaxShard hexadecimal digits in lower case, the common beginning of the keys of
	// all agents in the record. The signer chooses the number of digits.
	Shard string `json:"shard,omitempty"`
	Words Words  `json:"words"`
}

// Words are packed Word values in the order of their agents, each agent once. In text they are
// base64url, 16 characters for each.
type Words []byte

// Word is the liveness report about one agent, unpacked.
type Word struct {
	Agent AgentTag
	Reach Reach
	// Ago is the age of the observation when the record was issued, in whole minutes.
	Ago time.Duration
	// Called is true for the result of a call for a person, false for that of a probe.
	Called bool
	// Within is an upper bound of the agent's response time: a power of two, in milliseconds, at
	// least 2; 0 if it was not measured. From 16 s on there is no bound.
	Within time.Duration
}

// PackWords packs reports in their order; of several about one agent the last counts. Values are
// cut to the precision of the packed form.
func PackWords(list []Word) Words {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b Word) int { return bytes.Compare(a.Agent[:], b.Agent[:]) })
	out := make(Words, 0, len(list)*wordLen)
	for i, w := range list {
		if i+1 < len(list) && list[i+1].Agent == w.Agent {
			continue
		}
		out = append(out, w.Agent[:]...)
		out = binary.BigEndian.AppendUint16(out, uint16(min(max(w.Ago, 0), MaxAgo)/time.Minute))
		how := byte(w.Reach) & 7
		if w.Called {
			how |= 8
		}
		out = append(out, how|latencyClass(w.Within)<<4)
	}
	return out
}

// latencyClass returns the least n with d below 2^n ms, from 1 to 15; 0 for 0.
func latencyClass(d time.Duration) byte {
	if d <= 0 {
		return 0
	}
	n := byte(1)
	for n < 15 && d > time.Millisecond<<n {
		n++
	}
	return n
}

// Len returns the number of reports.
func (w Words) Len() int { return len(w) / wordLen }

// At returns report i, 0 <= i < Len.
func (w Words) At(i int) Word {
	b := w[i*wordLen:][:wordLen]
	out := Word{Agent: AgentTag(b), Ago: time.Duration(binary.BigEndian.Uint16(b[agentTagLen:])) * time.Minute}
	how := b[wordLen-1]
	out.Reach, out.Called = Reach(how&7), how&8 != 0
	if n := how >> 4; n > 0 {
		out.Within = time.Millisecond << n
	}
	return out
}

// Of returns the report about an agent; false if there is none. It is a binary search.
func (w Words) Of(agent AgentTag) (Word, bool) {
	lo, hi := 0, w.Len()
	for lo < hi {
		mid := (lo + hi) / 2
		switch bytes.Compare(w[mid*wordLen:][:agentTagLen], agent[:]) {
		case 0:
			return w.At(mid), true
		case -1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return Word{}, false
}

// MarshalText implements encoding.TextMarshaler.
func (w Words) MarshalText() ([]byte, error) { return encoding.AppendEncode(nil, w), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (w *Words) UnmarshalText(text []byte) error {
	n := encoding.DecodedLen(len(text))
	if n > MaxWords*wordLen || n%wordLen != 0 {
		return errBinary
	}
	out := make(Words, n)
	if got, err := encoding.Decode(out, text); err != nil || got != n || len(text) != encoding.EncodedLen(n) {
		return errBinary
	}
	*w = out
	return nil
}

func (l *Live) recordType() Type { return TypeLive }
func (l *Live) slotKey() string  { return string(l.Subject) + "/" + l.Shard }

func (l *Live) checkFields(f *fields) {
	_, ok := l.Subject.Digest()
	f.Field(ok, "subject", "is not the id of a portal")
	f.Field(len(l.Shard) <= MaxShard && hexDigits(l.Shard), "shard", "at most %d of 0–9 and a–f", MaxShard)
	f.Field(len(l.Words) > 0 && len(l.Words)%wordLen == 0 && l.Words.Len() <= MaxWords, "words", "from 1 to %d",
		MaxWords)
	for i := range l.Words.Len() {
		w := l.Words.At(i)
		f.Field(w.Reach >= Alive && w.Reach <= Unreachable, "words", "a state is 1 to 4")
		f.Field(w.Ago <= MaxAgo, "words", "nothing older than %d minutes", MaxAgo/time.Minute)
		f.Field(len(l.Shard) > MaxShard || w.Agent.Shard(len(l.Shard)) == l.Shard, "words",
			"an agent is not of the shard")
		f.Field(i == 0 || bytes.Compare(l.Words[(i-1)*wordLen:][:agentTagLen], w.Agent[:]) < 0, "words",
			"in order of the agents, each once")
	}
}

func hexDigits(s string) bool {
	for i := range len(s) {
		if c := s[i]; !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f') {
			return false
		}
	}
	return true
}
