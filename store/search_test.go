package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"agentsite/internal/account"
	"agentsite/internal/chat"
	"agentsite/internal/clock"
	"agentsite/internal/ident"
	"agentsite/internal/task"
	"agentsite/internal/testing/storetest"
)

// finds are the texts a search of the account finds, newest first.
func finds(t testing.TB, db *storetest.DB, who account.Account, query string) []string {
	t.Helper()
	list, _, err := db.SearchMessages(context.Background(), "person", who.ID, query, chat.Point{}, 50)
	if err != nil {
		t.Fatalf("%q: %v", query, err)
	}
	out := []string{}
	for _, f := range list {
		out = append(out, task.PlainText(f.Message.Parts))
	}
	return out
}

func indexAll(t testing.TB, db *storetest.DB) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = db.IndexWords(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSearchMessages_Words(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	texts := []string{"The ferry to Split leaves at nine", "Überfahrt nach Görlitz", "It doesn't leave", "明天去北京吃烤鸭", "price: 12.50 EUR (net)", "say \"hello\" AND room:x NEAR(y)", "Привет, мир", "a-b_c d'e",
		"학교에서 만나요", "สวัสดีครับ ยินดีต้อนรับ",
		"मुझे हिन्दी आती है", "السَّلامُ عليكم", "ﬁve m² of Straße"}
	for _, s := range texts {
		storetest.Say(t, db, c, ada, s)
	}
	for query, want := range map[string][]int{
		"ferry":          {0},
		"FERRY split":    {0},
		"split ferry":    {0},
		"fer":            {0},
		"fe":             {0},
		"fer split":      nil, // only the last word may be a beginning
		"erry":           nil,
		"leave":          {2, 0},
		"uberfahrt":      {1},
		"goerlitz":       nil,
		"GÖRLITZ":        {1},
		"don't":          nil,
		"doesnt":         {2},
		"doesn't":        {2},
		"北京":             {3},
		"京北":             nil,
		"烤鸭 明天":          {3},
		"12.50":          {4},
		"\"hello\"":      {5},
		"hello AND":      {5},
		"room:x":         {5},
		"NEAR(y)":        {5},
		"привет":         {6},
		"room : " + c.ID: nil,
		c.ID:             nil,
		"":               nil,
		"   ":            nil,
		"*":              nil,
		"\"":             nil,
		"-ferry":         {0},
		"ferry OR":       nil,
		"ferry\x00":      {0},
		"d'e":            {7},
		"학교":             {8},
		"학교 만나":          {8},
		"교학":             nil,
		"สวัสดี":         {9},
		"ต้อนรับ สวัสดี": {9},
		"\xff\xfe":      nil,
		"हिन्दी":        {10},
		"हन":            nil,
		"السلام":        {11},
		"strasse":       {12},
		"m²":            {12},
		"^ferry + (":    {0},
		"{words}:ferry": nil,
	} {
		want2 := []string{}
		for _, i := range want {
			want2 = append(want2, texts[i])
		}
		if got := finds(t, db, ada, query); !slices.Equal(got, want2) {
			t.Errorf("%q finds %q, want %q", query, got, want2)
		}
	}
	if _, _, err := db.SearchMessages(t.Context(), "person", ada.ID, strings.Repeat("\"word* ", 10000), chat.Point{}, 10); err != nil {
		t.Error(err)
	}
}

// Nobody finds what they do not see: rooms they are not in or left, what was
// said before they came, was removed, or is not said any more.
func TestSearchMessages_Sight(t *testing.T) {
	t.Parallel()
	for _, indexed := range []bool{true, false} {
		t.Run(fmt.Sprint("indexed before: ", indexed), func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t)
			ada, bob, eve := storetest.Account(t, db, "ada"), storetest.Account(t, db, "bob"), storetest.Account(t, db, "eve")
			c, private := storetest.Conversation(t, db, ada), storetest.Conversation(t, db, ada)
			index := func() {
				if indexed {
					indexAll(t, db)
				}
			}
			storetest.Say(t, db, c, ada, "apple before")
			join(t, db, c, bob, chat.RoleMember, -1)
			storetest.Say(t, db, c, ada, "apple after")
			storetest.Say(t, db, private, ada, "apple alone")
			removed := storetest.Say(t, db, c, ada, "apple removed").Message.Seq
			edited := storetest.Say(t, db, c, ada, "apple edited").Message.Seq
			index()
			amend(t, db, by(c, ada, chat.Unsaid, removed, ""))
			amend(t, db, by(c, ada, chat.Edit, edited, "pear instead"))
			amend(t, db, by(c, ada, chat.React, edited, "apple"))
			index()
			for _, tt := range []struct {
				who   account.Account
				query string
				want  []string
			}{
				{ada, "apple", []string{"apple alone", "apple after", "apple before"}}, {bob, "apple", []string{"apple after"}}, {eve, "apple", nil},
				{bob, "pear", []string{"pear instead"}}, {ada, "removed", nil}, {ada, "edited", nil}, {ada, "something", nil},
			} {
				// What two rooms said in one millisecond has no order.
				got := slices.Sorted(slices.Values(finds(t, db, tt.who, tt.query)))
				if want := slices.Sorted(slices.Values(tt.want)); !slices.Equal(got, want) {
					t.Errorf("%s finds %q by %q, want %q", tt.who.Name, got, tt.query, tt.want)
				}
			}
			if _, err := db.Leave(t.Context(), c.ID, "person", bob.ID, clock.Now(), event(bob)); err != nil {
				t.Fatal(err)
			}
			if got := finds(t, db, bob, "apple"); len(got) != 0 {
				t.Errorf("who left finds %q", got)
			}
			storetest.Sound(t, db)
		})
	}
}

// Pages of a search follow each other without a gap, newest first, also where
// many texts were said in the same moment, in more rooms than one question to
// the index names.
func TestSearchMessages_Pages(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	now := clock.Now()
	const rooms, texts = 300, 2
	for r := range rooms {
		c := storetest.Conversation(t, db, ada)
		for i := range texts {
			p := storetest.Post(c, ada, "", fmt.Sprint("word ", r, " ", i))
			p.Message.CreatedAt = now.Add(time.Duration(r/40) * time.Second)
			if _, err := db.Append(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
	}
	indexAll(t, db)
	seen, last := map[string]bool{}, now.Add(time.Hour)
	var before chat.Point
	for {
		page, _, err := db.SearchMessages(t.Context(), "person", ada.ID, "word", before, 37)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range page {
			if seen[f.Message.ID] || f.Message.CreatedAt.After(last) || f.Snippet != task.PlainText(f.Message.Parts) {
				t.Fatalf("%+v a second time, or out of order", f)
			}
			seen[f.Message.ID], last = true, f.Message.CreatedAt
			before = chat.Point{At: f.Message.CreatedAt, ID: f.Message.ID}
		}
		if len(page) == 0 {
			break
		}
	}
	if len(seen) != rooms*texts {
		t.Errorf("%d texts of %d", len(seen), rooms*texts)
	}
}

func TestSearchMessages_Snippets(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	c := storetest.Conversation(t, db, ada)
	c.Title = "Travel"
	if _, err := db.Rename(t.Context(), c.ID, c.Title, event(ada)); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("and so on it goes ", 40)
	storetest.Say(t, db, c, ada, long+"the Málaga ferry\n\nleaves "+long)
	list, _, err := db.SearchMessages(t.Context(), "person", ada.ID, "malaga fer", chat.Point{}, 10)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	s := list[0].Snippet
	if list[0].Title != "Travel" || !strings.Contains(s, "the Málaga ferry leaves and") || len([]rune(s)) > 210 || !strings.HasPrefix(s, "…") || !strings.HasSuffix(s, "…") {
		t.Errorf("%+v", list[0])
	}
}

// IndexWords comes to everything, and to what was said since, and then has
// nothing to do.
func TestIndexWords(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ada := storetest.Account(t, db, "ada")
	for range 3 {
		c := storetest.Conversation(t, db, ada)
		for i := range 300 {
			storetest.Say(t, db, c, ada, fmt.Sprint("text ", i))
		}
	}
	dir := storetest.Dir(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = storetest.Open(t, dir) // which forgets where words are missing
	indexAll(t, db)
	if more, err := db.IndexWords(t.Context()); err != nil || more {
		t.Error(more, err)
	}
	c := storetest.Conversation(t, db, ada)
	storetest.Say(t, db, c, ada, "something new")
	if more, err := db.IndexWords(t.Context()); err != nil || !more {
		t.Error(more, err)
	}
	indexAll(t, db)
	if got := finds(t, db, ada, "text"); len(got) != 50 {
		t.Errorf("found %d", len(got))
	}
	storetest.Sound(t, db)
}

// However many texts there are with a word, a search asks for a page of them.
func BenchmarkSearchMessages(b *testing.B) {
	db := storetest.New(b)
	ada := storetest.Account(b, db, "ada")
	c := chat.Conversation{ID: ident.NewID(), CreatedAt: clock.Now(), Members: []chat.Member{{Kind: "person", ID: ada.ID, Handle: "ada", Role: chat.RoleOwner}}}
	const n = 100_000
	said := make([]chat.Message, n)
	for i := range said {
		text := fmt.Sprintf("An ordinary message number %d of about sixty characters.", i)
		said[i] = chat.Message{ID: ident.NewID(), Sender: chat.Sender{Kind: "person", ID: ada.ID}, Kind: chat.Text, Parts: []task.Part{task.TextPart(text)}, CreatedAt: clock.Now().Add(time.Duration(i) * time.Millisecond)}
	}
	if err := db.CreateConversation(b.Context(), c, said, nil); err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	indexAll(b, db)
	b.Logf("the words of %d messages took %s", n, time.Since(start))
	for name, query := range map[string]string{"common": "ordinary mess", "rare": "number 4711", "none": "ordinary nothing"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := db.SearchMessages(b.Context(), "person", ada.ID, query, chat.Point{}, 20); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Rooms with one short text each share a transaction.
func TestIndexWords_ReadsManyRoomsAtOnce(t *testing.T) {
	t.Parallel()
	db := storetest.New(t)
	ann := storetest.Account(t, db, "ann")
	for range 120 {
		storetest.Say(t, db, storetest.Conversation(t, db, ann), ann, "a heron")
	}
	calls := 0
	for more := true; more; calls++ {
		var err error
		if more, err = db.IndexWords(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if calls > 6 {
		t.Errorf("%d calls for 120 rooms", calls)
	}
	list, _, err := db.SearchMessages(t.Context(), "person", ann.ID, "heron", chat.Point{}, 200)
	if err != nil || len(list) != 120 {
		t.Errorf("found %d, %v", len(list), err)
	}
}
