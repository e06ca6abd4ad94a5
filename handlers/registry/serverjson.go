package registry

// serverJSON is server.json of the schema of 2025-12-11.
type serverJSON struct {
	Schema      string       `json:"$schema"`
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Title       string       `json:"title"`
	Repository  *repository  `json:"repository"`
	Version     string       `json:"version"`
	WebsiteURL  string       `json:"websiteUrl"`
	Icons       []icon       `json:"icons"`
	Packages    []serverPack `json:"packages"`
	Remotes     []transport  `json:"remotes"`
	Meta        *serverMeta  `json:"_meta"`
}

// serverMeta holds the publishers' own data.
type serverMeta struct {
	Provided map[string]any `json:"io.modelcontextprotocol.registry/publisher-provided"`
}

type repository struct {
	URL       string `json:"url"`
	Source    string `json:"source"`
	ID        string `json:"id"`
	Subfolder string `json:"subfolder"`
}

type icon struct {
	Src      string   `json:"src"`
	MimeType string   `json:"mimeType"`
	Sizes    []string `json:"sizes"`
	Theme    string   `json:"theme"`
}

// serverPack is a package with the server, for users who run it themselves.
type serverPack struct {
	RegistryType         string     `json:"registryType"`
	RegistryBaseURL      string     `json:"registryBaseUrl"`
	Identifier           string     `json:"identifier"`
	Version              string     `json:"version"`
	FileSHA256           string     `json:"fileSha256"`
	RuntimeHint          string     `json:"runtimeHint"`
	Transport            transport  `json:"transport"`
	RuntimeArguments     []argument `json:"runtimeArguments"`
	PackageArguments     []argument `json:"packageArguments"`
	EnvironmentVariables []argument `json:"environmentVariables"`
}

// transport is the way to reach a running server.
type transport struct {
	Type      string           `json:"type"`
	URL       string           `json:"url"`
	Headers   []argument       `json:"headers"`
	Variables map[string]input `json:"variables"`
}

// argument is an argument of a command, an environment variable or a header; the last two have no
// type, value hint or repetition.
type argument struct {
	Type        string           `json:"type"`
	Name        string           `json:"name"`
	ValueHint   *string          `json:"valueHint"`
	IsRepeated  bool             `json:"isRepeated"`
	Description string           `json:"description"`
	IsRequired  bool             `json:"isRequired"`
	Format      string           `json:"format"`
	Value       *string          `json:"value"`
	IsSecret    bool             `json:"isSecret"`
	Default     string           `json:"default"`
	Placeholder string           `json:"placeholder"`
	Choices     []string         `json:"choices"`
	Variables   map[string]input `json:"variables"`
}

type input struct {
	Description string   `json:"description"`
	IsRequired  bool     `json:"isRequired"`
	Format      string   `json:"format"`
	Value       string   `json:"value"`
	IsSecret    bool     `json:"isSecret"`
	Default     string   `json:"default"`
	Placeholder string   `json:"placeholder"`
	Choices     []string `json:"choices"`
}

// The transports of servers.
const (
	stdio      = "stdio"
	streamable = "streamable-http"
	sse        = "sse"
)

// endpoint returns the address at which this portal can call the server: that of the first remote
// of type streamable-http without variables.
func (s *serverJSON) endpoint() string {
	for _, r := range s.Remotes {
		if r.Type == streamable && len(templateNames(r.URL)) == 0 && len(r.URL) <= maxEndpoint {
			return r.URL
		}
	}
	return ""
}

// maxEndpoint bounds the address of an agent.
const maxEndpoint = 500
