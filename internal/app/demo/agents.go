package demo

import (
	"fmt"
	"strings"
)

// sorry is the reply of an agent that cannot process its input. It is an answer, not a failure.
type sorry string

func (s sorry) Error() string { return string(s) }

func sorryf(format string, args ...any) error { return sorry(fmt.Sprintf(format, args...)) }

// work computes an agent's answer to a text.
type work func(in string) (string, error)

// agent is an agent that speaks A2A.
type agent struct {
	name, title, about string
	tags               []string
	// asks are example questions, the first of them the example on its page.
	asks []string
	do   work
}

// server is an agent that speaks MCP.
type server struct {
	name, title, about string
	tags               []string
	tools              []tool
}

// tool is a tool of a server. It takes one text.
type tool struct {
	name, about, takes, example string
	do                          work
}

func words(s string) []string { return strings.Fields(s) }

// allAgents returns the agents from which portals choose, in an order in which neighbours have
// different topics.
func allAgents() []agent {
	return []agent{
		{"regex-explainer", "Regex explainer", "Explains a regular expression piece by piece, in plain words. Paste one and read what it matches.", words("regex code teaching"),
			[]string{`^(\d{4})-(\d{2})-(\d{2})$`, `(?i)colou?r`, `^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$`, `https?://\S+`}, explainRegex},
		{"colour-namer", "Colour namer", "Tells what people would call a colour, and whether black or white text reads best on it.", words("design colour accessibility"),
			[]string{"#2e8b57", "What is #ff6347 called?", "#1e293b", "midnight blue"}, nameColour},
		{"text-statistics", "Text statistics", "Counts words, sentences and lines of a text, finds the longest word and says how long reading it aloud takes.", words("writing text statistics"),
			[]string{"The quick brown fox jumps over the lazy dog. It does so every day, and nobody knows why.", "To be, or not to be, that is the question."}, textStatistics},
		{"roman-numerals", "Roman numerals", "Turns numbers into Roman numerals and back.", words("numbers history"),
			[]string{"1994", "MMXXVI", "What is 444?", "CDXLIV"}, romanNumerals},
		{"cron-explainer", "Cron explainer", "Reads a line of a crontab: says what each field means, and when it runs next.", words("cron operations time"),
			[]string{"30 6 * * mon-fri", "*/15 * * * *", "0 0 1 * *", "0 9,17 * * 1-5"}, explainCron},
		{"unit-converter", "Unit converter", "Converts lengths, weights, volumes, speeds, temperatures and amounts of data.", words("units cooking travel"),
			[]string{"26.2 miles in km", "72 F in C", "5 gallons in litres", "1 GiB in MB"}, convertUnits},
		{"csv-summary", "CSV summary", "Looks into a table and says for each column what it holds: numbers with least, most and mean, or how many different values.", words("data csv tables"),
			[]string{"city,people,area\nLisbon,545000,100\nGhent,267000,156\nTurku,201000,306", "day,steps\nMon,8200\nTue,10400\nWed,6100"}, summarizeCSV},
		{"moon-watch", "Moon watch", "Says how the moon looks tonight, or on any day, and when it is full again.", words("astronomy nature calendar"),
			[]string{"How is the moon tonight?", "2027-01-01", "2026-12-24"}, moon},
		{"json-formatter", "JSON formatter", "Makes JSON readable. If it is broken, says in which line and why.", words("json code data"),
			[]string{`{"portal":"harbour","agents":4,"open":true}`, `{"name": "Ada", "born": 1815,}`, `[1,2,{"three":3}]`}, formatJSON},
		{"readability", "Readability judge", "Says how easy an English text is to read, by Flesch's measure.", words("writing english teaching"),
			[]string{"The cat sat on the mat. The dog ran to the gate.", "Notwithstanding contractual obligations, the undersigned parties acknowledge the aforementioned considerations."}, readability},
		{"ip-calculator", "IP calculator", "Takes an address range apart: first and last address, how many, and whether it is public.", words("network operations ip"),
			[]string{"10.1.2.0/22", "192.168.178.0/24", "2001:db8::/48"}, network},
		{"loan-calculator", "Loan calculator", "Works out what a loan costs a month, and how much of it is interest.", words("money finance"),
			[]string{"250000 at 3.5% for 25 years", "12000 at 6.9% for 4 years"}, loan},
		{"password-judge", "Password judge", "Estimates how long a password holds against guessing. Try one that you do not use.", words("security passwords"),
			[]string{"correct horse battery staple", "Tr0ub4dor&3", "password123"}, passwordStrength},
		{"date-desk", "Date desk", "Weekday, week and day of the year of any date, and the days between two.", words("calendar time planning"),
			[]string{"2026-12-24", "How long from 2026-01-01 to 2026-12-31?", "1969-07-20"}, dates},
		{"morse-operator", "Morse operator", "Codes text into Morse, and reads Morse back.", words("morse radio fun"),
			[]string{"CQ CQ DE AGENTS", "... --- ...", "hello harbour"}, morse},
		{"prime-factors", "Prime factors", "Takes whole numbers apart into primes.", words("numbers mathematics"),
			[]string{"360360", "999983", "Is 1000003 prime?"}, primeFactors},
		{"url-dissector", "Address dissector", "Takes a web address apart: host, path and every parameter, decoded.", words("web code address"),
			[]string{"https://shop.example/search?q=red+shoes&page=2#top", "https://example.org:8443/a/b?utm_source=mail"}, dissectURL},
		{"keyword-finder", "Keyword finder", "Finds the words that carry a text.", words("writing text search"),
			[]string{"The harbour opens at dawn. Ships wait for the harbour master, and the harbour master waits for the tide."}, keywords},
		{"http-status", "HTTP status desk", "Says what a status code of HTTP means, and whether trying again helps.", words("web operations http"),
			[]string{"What does 429 mean?", "503", "304", "418"}, explainStatus},
		{"number-speller", "Number speller", "Writes numbers in English words, as on a cheque.", words("numbers english writing"),
			[]string{"1984", "1000001", "86400"}, spellNumber},
		{"check-digits", "Check digit desk", "Tests the numbers of books and cards for mistyped digits.", words("books numbers validation"),
			[]string{"978-0-306-40615-7", "0-8044-2957-X", "978-0-306-40615-8"}, checkDigits},
		{"case-converter", "Name caser", "Writes a name as camelCase, snake_case, kebab-case and what else programs want.", words("code naming"),
			[]string{"maximum retry count", "parseHTTPRequest", "user-profile page"}, caseForms},
		{"dice-tower", "Dice tower", "Throws dice, any number of any kind.", words("games dice fun"),
			[]string{"3d6+2", "d20", "4d8"}, dice},
		{"unicode-inspector", "Unicode inspector", "Lists the characters of a text with their code points and bytes.", words("unicode code text"),
			[]string{"naïve café", "Ω≈ç", "A😀"}, runes},
		{"number-cruncher", "Number cruncher", "Least, most, mean, median and spread of a list of numbers.", words("statistics data numbers"),
			[]string{"3 1 4 1 5 9 2 6 5 3", "12.5 14.1 9.9 13.3"}, describeNumbers},
		{"base-changer", "Base changer", "Writes a number in decimal, hexadecimal, octal and binary.", words("numbers code binary"),
			[]string{"0xff", "What is 42?", "0b1011"}, bases},
		{"line-sorter", "Line sorter", "Sorts lines and takes out what stands there twice.", words("text lists"),
			[]string{"pear\napple\nfig\napple", "red, green, blue, red"}, sortLines},
		{"rot13-clerk", "Rot13 clerk", "Hides the end of a story behind Rot13, and brings it back.", words("cipher fun text"),
			[]string{"The butler did it.", "Gur ohgyre qvq vg."}, rot13},
		{"hash-desk", "Hash desk", "The check sums of a text: SHA-256, MD5 and CRC-32.", words("hash security code"),
			[]string{"hello", "The quick brown fox jumps over the lazy dog"}, hashes},
	}
}

// allServers returns the MCP servers from which portals choose.
func allServers() []server {
	return []server{
		{"encoding-bench", "Encoding bench", "Tools that encode, decode and sum up text.", words("code encoding hash"), []tool{
			{"base64_encode", "Encodes a text as base64.", "text", "hello", toBase64}, {"base64_decode", "Decodes base64.", "text", "aGVsbG8=", fromBase64}, {"checksums", "SHA-256, MD5 and CRC-32 of a text.", "text", "hello", hashes}}},
		{"number-bench", "Number bench", "Tools for whole numbers: primes, words and bases.", words("numbers mathematics"), []tool{
			{"factorize", "Takes a whole number apart into primes.", "number", "360360", primeFactors}, {"spell", "Writes a number in English words.", "number", "1984", spellNumber}, {"bases", "Writes a number in four bases.", "number", "0xff", bases}}},
		{"writing-bench", "Writing bench", "Tools for writers: counts, keywords and how easy a text reads.", words("writing text english"), []tool{
			{"count", "Counts words, sentences and lines.", "text", "To be, or not to be.", textStatistics}, {"keywords", "Finds the words that carry a text.", "text", "Ships wait for the harbour master.", keywords}, {"readability", "Flesch's measure of an English text.", "text", "The cat sat on the mat today.", readability}}},
		{"network-bench", "Network bench", "Tools for who runs networks: ranges, addresses and statuses.", words("network web operations"), []tool{
			{"address_range", "Says what an address range holds.", "range", "10.1.2.0/22", network}, {"dissect_url", "Takes a web address apart.", "address", "https://example.org/a?b=c", dissectURL}, {"http_status", "Says what a status of HTTP means.", "status", "503", explainStatus}}},
		{"table-bench", "Table bench", "Tools for data: summaries of tables, readable JSON, figures of lists.", words("data csv json"), []tool{
			{"summarize_csv", "Says what the columns of a table hold.", "csv", "a,b\n1,2\n3,4", summarizeCSV}, {"format_json", "Makes JSON readable.", "json", `[1,2,{"three":3}]`, formatJSON}, {"describe_numbers", "Least, most, mean, median and spread.", "numbers", "3 1 4 1 5", describeNumbers}}},
	}
}
