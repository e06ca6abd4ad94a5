package openai

import (
	"encoding/json"

	"agentsite/internal/fault"
)

// Pieces is the content of a message that this portal receives: a string, null, or an array of
// parts. Unlike Content it keeps parts that are not text, so that the portal can refuse or use
// them.
type Pieces []Piece

// Piece is one part of a message. Text is set for the type "text" and Image for "image_url"; parts
// of other types have neither.
type Piece struct {
	Type  string
	Text  string
	Image string // URL of the picture, often a data URL
}

// UnmarshalJSON implements json.Unmarshaler. A value that is neither string, null nor an array of
// objects with a type is an Invalid fault.
func (p *Pieces) UnmarshalJSON(b []byte) error {
	*p = nil
	var s string
	switch {
	case string(b) == "null":
		return nil
	case json.Unmarshal(b, &s) == nil:
		*p = Pieces{{Type: "text", Text: s}}
		return nil
	}
	var parts []struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return &fault.Error{Kind: fault.Invalid,
			Safe:   "The content of a message is a text or an array of parts, each with a type.",
			Fields: map[string]string{"messages": "has content of a wrong type"}}
	}
	for _, x := range parts {
		*p = append(*p, Piece{Type: x.Type, Text: x.Text, Image: x.Image.URL})
	}
	return nil
}
