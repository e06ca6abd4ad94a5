package builtin

import (
	"strings"

	"agentsite/internal/index/bm25"
)

// thesaurus maps words to related words. It is a small index of groups of words as documents, so
// that every form of a word finds its group.
type thesaurus struct {
	index  *bm25.Index
	groups [][]string
}

func newThesaurus(texts ...string) *thesaurus {
	t := &thesaurus{index: bm25.New(bm25.Field{Name: "words", Weight: 1, Length: 8})}
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if group := strings.Fields(line); len(group) > 1 {
				t.index.Put(len(t.groups), line, t.index.Analyze([]string{line}))
				t.groups = append(t.groups, group)
			}
		}
	}
	return t
}

// relatedWords returns the words of the groups that contain w in any form, without w itself; nil if
// there are none.
func (t *thesaurus) relatedWords(w string) []string {
	var out []string
	m := t.index.Match(exactQuery(w))
	defer m.Close()
	if m.Any {
		return nil
	}
	m.Bits.Each(func(id int) bool {
		for _, o := range t.groups[id] {
			if o != w {
				out = append(out, o)
			}
		}
		return true
	})
	return out
}

// relatedText returns the related words of all words of a text, for an index, each at most four times so
// that no word dominates. known caches relatedWords by word.
func (t *thesaurus) relatedText(text string, known map[string][]string) string {
	var b strings.Builder
	times := make(map[string]int)
	for _, w := range splitWords(text) {
		if stopWords[w] {
			continue
		}
		list, ok := known[w]
		if !ok {
			list = t.relatedWords(w)
			known[w] = list
		}
		for _, o := range list {
			if times[o]++; times[o] <= 4 {
				b.WriteString(o)
				b.WriteByte(' ')
			}
		}
	}
	return b.String()
}

// exactQuery returns a query that finds a word in all its forms, but neither other spellings nor longer
// words.
func exactQuery(w string) string { return `"` + w + `"` }

// portalWords are groups of words that people use for the same thing when they ask about the portal.
const portalWords = `
password pw pwd passwd passphrase passcode credential pin
login signin logon authenticate session
logout signout
signup join enrol enroll membership
account user profile membership login
delete remove erase drop uninstall unregister destroy wipe discard
withdraw unpublish hide retract
edit change modify update alter adjust amend correct
rename name title
create make add new generate obtain
register publish submit add list offer share announce
start begin launch run boot serve open
stop cancel abort interrupt halt kill quit terminate end shutdown shut pause
backup copy snapshot archive save dump export
restore recover recovery import undo
move migrate migration transfer relocate switch
upgrade update version newer release latest
rollback downgrade revert older undo
error fail failure problem wrong fault issue trouble broken
unreachable offline down unavailable dead outage disconnected unresponsive
slow lag latency performance sluggish speed delay
memory ram hardware requirements cpu processor resources footprint specs
disk storage space drive volume
full exhausted
log journal trace protocol record debug
monitor health healthcheck uptime probe alive metrics watch status
liveness alive online status state badge live up
private hidden secret confidential restricted
private privacy read eavesdrop confidential
type kind sort category supported support
reachable accessible address
colleague somebody person another friend
rights permission privileges admin
lie lying wrong believe truth hallucinate
lie lies believe trust honest
secret password encrypted sealed
publish register list add
enter type put key
stolen leaked stole steal hacked
endpoint address agent server
injection tricked manipulated jailbreak believe
ssrf internal network private address
xss csrf script scripts protected
stuck help lost support
signup account registration
user people person others another somebody
encrypted hashed hash sealed secrets kept
invite add member
timeout silence late unreachable reply
try test demo echo evaluate
structure layout overview organized where
personal data privacy
public visible everyone everybody anyone open
unlisted hidden link
visibility visible private public access audience
cost price fee free pay charge money billing expensive
token key credential apikey
scope permission right access privilege allow restrict
operator admin administrator root superuser owner maintainer
guest anonymous visitor stranger unregistered
invite invitation referral
forgot forgotten lost reset remember
revoke invalidate withdraw cancel
disable block ban suspend deactivate lock kick close
limit quota maximum max cap throttle restriction bound allowance
large big long huge size length
conversation chat talk discussion thread room dialog dialogue
message text post write send
answer reply respond response
agent bot assistant
member participant people
several group multiple many together both two three
old past previous earlier history
export download extract
search find discover lookup locate browse explore
filter narrow facet
name handle username nickname
address url link endpoint host domain uri ip hostname
port listen bind
https tls ssl certificate encrypted
proxy nginx caddy apache traefik loadbalancer
service systemd daemon autostart background boot
setting config configuration option flag parameter environment variable configure customize
install setup build compile download deploy deployment requirements
database sqlite db storage
folder directory path location
leaked stolen compromised hacked exposed breached
security secure safe safety protect protection
trust believe reliable rely truth true honest accurate correct
verified verify authentic genuine proof confirmed
privacy tracking telemetry statistics analytics gdpr leave
stream streaming live sse websocket event realtime push
page pagination cursor next
repeat duplicate twice retry again resend idempotent double
api http rest programmatic
program script code integration integrate software
javascript js script
command cli terminal shell console
exit status return
test tests testing ci
manual documentation docs handbook guide help
word term meaning glossary definition vocabulary jargon terminology
calculate calculator calculation math maths compute arithmetic
ollama llama local model llm vllm
internal intranet lan private local localhost network
refuse refused deny denied reject rejected forbid forbidden block blocked
reconnect connection disconnect network offline interruption drop
reload refresh
crash power restart reboot killed loss
damaged corrupt corrupted broken
intact integrity consistent undamaged
date calendar
percent percentage
convert unit currency
vulnerability report hole exploit
changes changelog history release breaking
fix repair solve troubleshoot
see view look show watch display
read see eavesdrop access
stuck hang frozen wait
leave quit exit
expire expiry valid lifetime last duration
store keep hold save persist
example sample template
seal encrypt sealed hash
nightly daily automatic schedule cron scheduled
mention at address
task job call
wait poll
resume continue reconnect
error code kind
internet online public production
folder module package import dependency
contribute develop developer change
architecture design structure flow
describe description wording text
probe check ping liveness
begin start quickstart tutorial introduction beginner first
explain mean meaning
executable binary build compile
selfhost host deploy run install docker container
expose reach reachable listen
fuzzy typo wildcard operator syntax quotes exclude words
invisible missing hidden show appear listed
colour color green red grey dot badge state
tick checkmark unproven verified
multiagent group several mention
interrupt stop cancel generation
wifi network lose lost connection offline tab close closed
noscript lynx javascript disabled
silent silence nothing answer failed
gpt chatgpt mistral lmstudio llama model openai provider
protocol protocols kind speak
lan localhost private address blocked
character characters allowed name reserved taken
credential credentials key password secret bearer
heartbeat ping probe check liveness
dns connection refused unreachable
discoverable ranking found popular describe
requirement requirements strength complexity minimum allowed rule rules
expire logout remain stay signed session remember
locked rejected wrong login cannot
permission readonly scope restrict
promote sudo operator admin rights
spam abuse troll ban disable misbehave
swagger openapi api
sdk library client api program
subscribe push listen live event
throttled throttle rate limit
fsck tampered tamper integrity corruption intact verify
malformed corrupt damaged
prometheus metrics monitor health kubernetes
raspberry hardware requirement memory
maximum biggest longest limit built
ssrf allow private call
prompt instructions instruct
tip advice description write find
locked start lock
hallucinate accurate believe says
cleanly gracefully stop
computers lan network port listen address reach reachable
third party cloud external outside leave leaves sent
plaintext clear hash encrypted kept stored
brute force guess attempts tries attack clickjacking protected
harden hardening checklist production internet public
disclosure bounty vulnerability report
pull request contribute change patch
unread rename leave list conversation
store stored kept location where
attachment file upload part parts
delete account disable
pay price cost tokens
curl prove test works
unsubscribe leave
setup first initial
results list page next
json settings setting switch
right rights operator another
archive old past history
pause resume continue
`

// workWords are groups of words for kinds of work that agents do.
const workWords = `
summarize summarise summary condense shorten abstract digest brief recap
translate translation translator language foreign
proofread proofreading grammar spelling spellcheck typo correct punctuation
rewrite rephrase paraphrase reword polish style
write draft compose author copywriting writing
email mail letter inbox correspondence
code software developer coding
debug bug bugs defect troubleshoot error
review critique feedback assess
test tests testing qa
sql database query
calculate math maths arithmetic sum calculator
percent percentage vat discount
convert unit measure
trip travel vacation holiday journey itinerary tour
flight plane airline fly airport
hotel accommodation lodging stay room
train rail bus transit commute timetable
weather forecast rain temperature sunny
recipe cook cooking dish meal dinner food lunch
diet nutrition calorie healthy
fitness workout exercise gym sport
invoice bill billing receipt
tax taxes vat deduction
expense expenses spending budget money
accounting bookkeeping ledger books accountant
contract agreement clause nda
legal law lawyer attorney
picture image photo photograph illustration drawing
logo brand branding design
video film clip movie footage
music song playlist melody
audio speech voice sound podcast
transcribe transcript transcription dictation minutes
meeting minutes call
calendar appointment schedule scheduling
reminder remind todo
teach tutor lesson learn learning explain homework study student
quiz exam flashcard
job career cv resume application hiring
interview recruiter candidate recruiting
customer support ticket complaint helpdesk client
sales lead crm prospect
marketing advertisement ad campaign promote
social post tweet instagram linkedin
news headline press article
research paper paper papers literature study science scientific
search find lookup
chart graph plot diagram visualize visualise
spreadsheet excel csv table
data dataset statistics analytics analysis analyze analyse
map location address route directions navigation
plant garden gardening flower
pet dog cat animal vet
doctor medical symptom health illness medicine
house home apartment rent property flat
car vehicle auto repair
shop shopping buy purchase price product
stock stocks share market invest investment portfolio
currency exchange euro dollar
password security secure phishing
server deploy deployment devops infrastructure kubernetes
log logs monitoring incident outage
pdf document file scan
extract parse read ocr
game chess puzzle play
story fiction novel tale poem poetry
name naming
speech talk presentation slide slides deck
present gift birthday
wine drink cocktail
film movie cinema watch
book books novel reading read
kid kids child children baby
wedding party event celebration
energy electricity solar power
language vocabulary practice conversation
accessible accessibility contrast
`
