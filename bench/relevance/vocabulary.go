package main

// A function is a task of agents: its names as a verb and as a noun, the common one first. Functions
// with the same group are related: a person who needs one may be helped by the other.
type function struct {
	group string
	verbs []string
	nouns []string
}

// A domain is the subject or material of a task. Domains with the same area are related.
type domain struct {
	area  string
	names []string
}

// vocabulary is the words and sentences of one of the two sets of agents and queries. The two have no
// function, domain, language, brand or sentence in common.
type vocabulary struct {
	functions []function
	domains   []domain
	languages [][2]string // name and language tag
	brands    []string
	// Sentences of descriptions. %v stands for a verb and %n for a noun of the function, %d for the
	// domain.
	about []string
	// asides are sentences about another function (%v, %n) or domain (%d), which the agent does not
	// have.
	asides []string
	filler []string
	// Queries as people type them.
	keywords, questions []string
}

// dev is the vocabulary of the set for tuning.
var dev = vocabulary{
	functions: []function{
		{"language", []string{"translate", "localise", "render into another language"}, []string{"translator", "translation", "localisation"}},
		{"digest", []string{"summarise", "condense", "shorten"}, []string{"summary", "digest", "abstract writer"}},
		{"digest", []string{"extract data from", "pull fields from", "parse"}, []string{"data extraction", "parser", "field extractor"}},
		{"check", []string{"review", "proofread", "check for mistakes in"}, []string{"reviewer", "proofreader", "quality check"}},
		{"check", []string{"audit", "inspect", "verify the compliance of"}, []string{"auditor", "inspection", "compliance check"}},
		{"plan", []string{"schedule", "plan dates for", "organise the calendar of"}, []string{"scheduler", "calendar planner", "timetable"}},
		{"plan", []string{"forecast", "predict", "estimate the future of"}, []string{"forecast", "prediction", "outlook"}},
		{"make", []string{"write", "draft", "compose"}, []string{"writer", "drafting assistant", "composer"}},
		{"make", []string{"design", "sketch", "lay out"}, []string{"designer", "layout maker", "sketch artist"}},
		{"answer", []string{"answer questions about", "explain", "help with"}, []string{"helpdesk", "question answering", "explainer"}},
		{"find", []string{"search", "look up", "find"}, []string{"search engine", "finder", "lookup"}},
		{"find", []string{"compare prices of", "find offers for", "track the cost of"}, []string{"price comparison", "bargain hunter", "cost tracker"}},
	},
	domains: []domain{
		{"law", []string{"contracts", "agreements", "legal terms"}},
		{"law", []string{"patents", "inventions", "intellectual property"}},
		{"law", []string{"court rulings", "judgments", "case law"}},
		{"money", []string{"invoices", "bills", "receipts"}},
		{"money", []string{"tax returns", "taxes", "tax declarations"}},
		{"money", []string{"payroll", "salaries", "wages"}},
		{"health", []string{"medical records", "patient files", "clinical notes"}},
		{"health", []string{"medicines", "drugs", "prescriptions"}},
		{"health", []string{"diets", "nutrition", "meal plans"}},
		{"travel", []string{"flights", "air tickets", "airlines"}},
		{"travel", []string{"hotels", "accommodation", "rooms to stay"}},
		{"travel", []string{"trains", "railway journeys", "rail connections"}},
		{"software", []string{"source code", "programs", "pull requests"}},
		{"software", []string{"databases", "SQL queries", "tables"}},
		{"software", []string{"server logs", "log files", "error traces"}},
		{"home", []string{"recipes", "cooking", "dishes"}},
		{"home", []string{"gardens", "plants", "flower beds"}},
		{"home", []string{"furniture", "interiors", "living rooms"}},
		{"nature", []string{"weather", "storms", "rain and wind"}},
		{"nature", []string{"birds", "wildlife", "bird songs"}},
	},
	languages: [][2]string{{"German", "de"}, {"Spanish", "es"}, {"Japanese", "ja"}, {"Polish", "pl"}},
	brands:    []string{"Lexa", "Orbit", "Mira", "Quill", "Tandem", "Harbor", "Nova", "Pixel", "Sage", "Atlas"},
	about: []string{
		"This agent can %v %d for you.", "A dependable %n for %d.", "We %v %d, quickly and with care.",
		"Give it your %d and it will %v them.", "Made for teams that %v %d every day.", "The %n that understands %d.",
	},
	asides: []string{
		"Works well beside a %n for %d.", "It does not %v %d.", "From the makers of the popular %n for %d.",
		"Our other products %v %d.",
	},
	filler: []string{
		"Answers within seconds.", "No text is kept after the task ends.", "Free for small teams.", "Runs in Europe on green power.",
		"Works from any chat and by program.", "Built on a large model with tools of its own.", "Asks back when something is unclear.",
	},
	keywords:  []string{"%n %d", "%d %n", "%v %d", "%d"},
	questions: []string{"who can %v my %d?", "I need somebody to %v %d", "is there an agent to %v %d", "help me %v these %d please"},
}

// held is the vocabulary of the set for the figures. Nothing may be tuned on it.
var held = vocabulary{
	functions: []function{
		{"sound", []string{"transcribe", "write down", "turn speech into text from"}, []string{"transcription", "speech to text", "dictation"}},
		{"sound", []string{"read aloud", "narrate", "speak"}, []string{"narrator", "text to speech", "voice over"}},
		{"sort", []string{"classify", "categorise", "label"}, []string{"classifier", "categorisation", "labelling"}},
		{"sort", []string{"remove duplicates from", "clean up", "tidy"}, []string{"deduplication", "cleaner", "clean-up tool"}},
		{"teach", []string{"teach", "give lessons in", "train people in"}, []string{"tutor", "teacher", "course"}},
		{"teach", []string{"quiz people on", "test knowledge of", "examine"}, []string{"quiz master", "exam generator", "flashcards"}},
		{"watch", []string{"monitor", "watch over", "keep an eye on"}, []string{"monitoring", "watchdog", "observer"}},
		{"watch", []string{"warn about", "send alerts on", "notify people of"}, []string{"alerts", "early warning", "notification service"}},
		{"change", []string{"convert", "transform", "change the format of"}, []string{"converter", "conversion", "format changer"}},
		{"change", []string{"anonymise", "redact", "hide names in"}, []string{"anonymiser", "redaction", "privacy filter"}},
		{"trade", []string{"negotiate", "haggle over", "strike deals on"}, []string{"negotiator", "deal maker", "bargaining"}},
		{"trade", []string{"reserve", "book", "order"}, []string{"booking", "reservation", "ordering service"}},
	},
	domains: []domain{
		{"media", []string{"podcasts", "radio shows", "audio episodes"}},
		{"media", []string{"photos", "pictures", "images"}},
		{"media", []string{"films", "movies", "video clips"}},
		{"school", []string{"mathematics", "algebra", "maths"}},
		{"school", []string{"history", "past events", "ancient times"}},
		{"school", []string{"chemistry", "molecules", "reactions"}},
		{"industry", []string{"machines", "engines", "pumps and motors"}},
		{"industry", []string{"warehouses", "inventory", "stock"}},
		{"industry", []string{"electricity", "power grids", "energy use"}},
		{"office", []string{"emails", "inbox", "mail messages"}},
		{"office", []string{"meetings", "minutes", "conference calls"}},
		{"office", []string{"spreadsheets", "worksheets", "CSV files"}},
		{"people", []string{"job applications", "resumes", "candidates"}},
		{"people", []string{"customer complaints", "support tickets", "feedback"}},
		{"people", []string{"surveys", "questionnaires", "polls"}},
		{"city", []string{"traffic", "road jams", "congestion"}},
		{"city", []string{"restaurants", "dining tables", "places to eat"}},
		{"city", []string{"apartments", "flats", "rental homes"}},
		{"sea", []string{"ships", "vessels", "cargo boats"}},
		{"sea", []string{"tides", "ocean currents", "sea level"}},
	},
	languages: [][2]string{{"French", "fr"}, {"Italian", "it"}, {"Korean", "ko"}, {"Dutch", "nl"}},
	brands:    []string{"Vela", "Bramble", "Echo", "Juniper", "Kite", "Lumen", "Onyx", "Rivet", "Willow", "Zephyr"},
	about: []string{
		"Ask it to %v %d of any kind.", "Specialised in %d: %n without the wait.", "Lets you %v %d in one step.",
		"People use this %n when they deal with %d.", "%n for %d, small and large.", "It was trained to %v %d and nothing else.",
	},
	asides: []string{
		"Pairs nicely with any %n for %d.", "Please do not ask it to %v %d.", "A sister service will %v %d.",
		"Not to be confused with our %n for %d.",
	},
	filler: []string{
		"You get results in under a minute.", "Your words are never used for learning.", "The first hundred calls cost nothing.",
		"Hosted in two regions with a spare.", "Speaks the usual protocols.", "Tells you how sure it is.", "Made by a small company that answers its phone.",
	},
	keywords:  []string{"%d %n", "%n for %d", "%v %d", "%d"},
	questions: []string{"can anyone %v %d", "what is a good %n for %d?", "how do I %v a lot of %d", "looking for something that will %v %d"},
}
