package hub

import (
	"unicode/utf8"

	"agentsite/internal/fault"
	"agentsite/internal/ident"
	"agentsite/internal/plaintext"
)

// Elsewhere cleans an agent of another portal for the directory: texts are cleaned and cut to the limits
// of local registrations, invalid entries are removed, and all private fields are reset. An Invalid
// fault means that nothing usable remains.
func Elsewhere(a Agent) (Agent, error) {
	if err := ident.CheckForm(a.Name); err != nil {
		return Agent{}, fault.New(fault.Invalid, "name: %s", err)
	}
	if a.Portal == "" || a.ID == "" {
		return Agent{}, fault.New(fault.Invalid, "An agent of another portal has an id and a portal.")
	}
	a.Visibility, a.Config, a.HasSecret, a.Limits, a.EmbedOrigins, a.OwnerID, a.CoOwnerIDs, a.Publisher,
		a.Icon = Public, nil, false, Limits{}, nil, "", nil, "", ""
	a.Note, a.Author, a.Liveness = "", "", Liveness{State: Unknown}
	// A proof of another portal is only a claim; "proved" is for proofs that this portal verified.
	if a.Proof.State != Claimed {
		a.Proof = Proof{State: Unproven, Publisher: a.Proof.Publisher}
	}
	if a.Status.State != Deprecated {
		a.Status = Status{State: Active}
	}
	a.Status.Held, a.Status.Message = false, plaintext.Cut(plaintext.Clean(a.Status.Message), maxStatusMessage)
	if a.Title = plaintext.Cut(plaintext.OneLine(a.Title), maxTitle); a.Title == "" {
		a.Title = a.Name
	}
	if a.Description = plaintext.Cut(plaintext.Clean(a.Description), maxDescription); a.Description == "" {
		a.Description = a.Title
	}
	a.Skills = skillsElsewhere(a.Skills)
	a.InputModes, a.OutputModes = modesElsewhere(a.InputModes), modesElsewhere(a.OutputModes)
	a.Languages = plaintext.FilterFirst(plaintext.CleanList(a.Languages, true), maxLanguages, plaintext.IsLanguageTag)
	if len(a.Endpoint) > maxEndpoint {
		a.Endpoint = ""
	}
	if a.UpdatedAt.Before(a.CreatedAt) {
		a.UpdatedAt = a.CreatedAt
	}
	return a, nil
}

func skillsElsewhere(in []Skill) []Skill {
	in = cleanSkills(in[:min(len(in), maxSkills)])
	ids := make(map[string]bool)
	for i := range in {
		s := &in[i]
		s.Name, s.ID, s.Description = plaintext.Cut(s.Name, maxSkillName), plaintext.Cut(s.ID, maxSkillName),
			plaintext.Cut(s.Description, maxSkillText)
		if ids[s.ID] {
			s.ID = freeID(s.ID, ids)
		}
		ids[s.ID] = true
		s.Tags = plaintext.FilterFirst(s.Tags, maxTags, func(t string) bool { return utf8.RuneCountInString(t) <= maxTag })
		s.Examples = plaintext.FilterFirst(s.Examples, maxExamples,
			func(e string) bool { return utf8.RuneCountInString(e) <= maxExample })
	}
	return in
}

func modesElsewhere(in []string) []string {
	return plaintext.FilterFirst(plaintext.CleanList(in, true), maxModes, plaintext.IsMediaType)
}
