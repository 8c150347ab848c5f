package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/veneer-skins/veneer/core"
	"github.com/veneer-skins/veneer/core/coretest"
	"github.com/veneer-skins/veneer/shared/config"
	"github.com/veneer-skins/veneer/shared/skin"
	"github.com/veneer-skins/veneer/shared/testenv"
	"github.com/veneer-skins/veneer/shared/testenv/cmptest"
)

// probe is a value of a field, and whether the document allows it.
type probe struct {
	value any
	valid bool
}

// probes returns the values at the bounds of a schema, and one beyond each. Where the schema has no
// bound, a large value must be allowed.
func probes(schema *openapi3.Schema) []probe {
	var all []probe
	switch {
	case schema.Type.Includes(openapi3.TypeInteger):
		all = append(all, probe{int64(*schema.Min), true}, probe{int64(*schema.Min) - 1, false})
		if schema.Max == nil {
			return append(all, probe{int64(math.MaxInt64), true})
		}
		return append(all, probe{int64(*schema.Max), true}, probe{int64(*schema.Max) + 1, false})
	case schema.Type.Includes(openapi3.TypeArray):
		choices := schema.Items.Value.Enum
		for n := uint64(0); n <= *schema.MaxItems+1; n++ {
			elements := []any{}
			for i := range n {
				elements = append(elements, choices[int(i)%len(choices)])
			}
			all = append(all, probe{elements, n >= schema.MinItems && n <= *schema.MaxItems})
		}
		for _, p := range probes(schema.Items.Value) {
			all = append(all, probe{[]any{p.value}, p.valid})
		}
		return all
	case len(schema.Enum) > 0:
		for _, value := range schema.Enum {
			all = append(all, probe{value, true}, probe{fmt.Sprint(value) + "s", false})
		}
		return all
	case schema.Type.Includes(openapi3.TypeString) && !isUnconstrained(schema):
		if schema.MinLength > 0 {
			all = append(all, probe{lettersOf(schema, schema.MinLength-1), false})
		}
		if schema.Format == "" || schema.MinLength > 0 {
			all = append(all, probe{lettersOf(schema, schema.MinLength), true})
		}
		if schema.MaxLength == nil {
			return append(all, probe{lettersOf(schema, 1000), true})
		}
		return append(all, probe{lettersOf(schema, *schema.MaxLength), true}, probe{lettersOf(schema, *schema.MaxLength+1), false})
	default:
		return nil
	}
}

// isUnconstrained reports whether the validity of a text depends on more than its length: a current
// password, a file, a user that exists, or a time.
func isUnconstrained(schema *openapi3.Schema) bool {
	return schema.Format == "user" || schema.Format == "future" || schema.Format == "password" && schema.MaxLength == nil || schema.ContentMediaType != ""
}

// lettersOf returns a text of so many characters that is otherwise valid by a schema.
func lettersOf(schema *openapi3.Schema, characters uint64) string {
	const domain = "@example.com"
	switch n := int(characters); {
	case schema.Format == "email":
		return strings.Repeat("a", n-len(domain)) + domain
	case schema.Pattern != "":
		return strings.Repeat("a", n)
	default:
		return string([]rune(strings.Repeat("äöüß", n/4+1))[:n]) // not one letter, which no password may be
	}
}

// checkField checks that the response has an error for the field, or has none if valid.
func checkField(t *testing.T, r response, field string, value any, valid bool) {
	t.Helper()
	var problem struct{ Errors map[string][]string }
	testenv.Do(t, json.Unmarshal(r.Body, &problem))
	isInvalid := r.Status == 422 && problem.Errors[field] != nil
	testenv.Check(t, r.Status != 400 && r.Status != 415 && r.Status != 429 && r.Status < 500,
		"%s with %s %.40q is answered with %d %s", r.Request(), field, fmt.Sprint(value), r.Status, r.Body)
	if isInvalid == valid {
		t.Errorf("%s with %s %.40q, of %d bytes, is answered with %d %s, but documented as granted: %t",
			r.Request(), field, fmt.Sprint(value), len(fmt.Sprint(value)), r.Status, r.Body, valid)
	}
}

// Fields and parameters are accepted up to their documented bounds and rejected beyond them. Other
// tests check that an id below 1 is not found.
func TestDocumentedBounds(t *testing.T) {
	t.Parallel()
	testenv.SkipShort(t)

	c := start(t, "LIMIT_REQUESTS=0", "LIMIT_REGISTRATIONS=0", "LIMIT_UPLOADS=0", "LIMIT_PRICES=0", "LIMIT_CHANGES=0", "LIMIT_REPORTS=0",
		"LIMIT_LOGIN_FAILURES=0", "LIMIT_LOGIN_FAILURES_PER_ADDRESS=0", "LIMIT_LOGIN_FAILURES_PER_ACCOUNT=0").signUp(t)
	c.withPassword(t, "demo-password") // as in the document's examples
	c.permit(t, core.SuperAdministrator)
	player := c.player(t, "Demo")
	c.site.Exec(t, "ALTER TABLE textures ALTER tid RESTART WITH 100") // so that texture 1 exists, and no cape does
	for _, e := range mustLoadContract(t).endpoints() {
		path := strings.Replace(e.path, "/api/players/1", player, 1)
		for _, parameter := range e.Parameters {
			p := parameter.Value
			if p.In != openapi3.ParameterInQuery || p.AllowEmptyValue {
				continue
			}
			for _, probe := range probes(p.Schema.Value) {
				query := url.Values{p.Name: {fmt.Sprint(probe.value)}}
				if elements, ok := probe.value.([]any); ok {
					query = url.Values{}
					for _, element := range elements {
						query.Add(p.Name, fmt.Sprint(element))
					}
				}
				if p.Name == "page" && e.Parameters.GetByInAndName(openapi3.ParameterInQuery, "perPage") != nil {
					query.Set("perPage", "1") // the larger the pages, the fewer there are
				}
				checkField(t, c.Send(t, e.method, path+"?"+query.Encode(), body{}), p.Name, probe.value, probe.valid)
			}
		}
		if e.RequestBody != nil {
			for kind, media := range e.RequestBody.Value.Content {
				if kind == "application/json" || len(e.RequestBody.Value.Content) == 1 {
					c.probeBody(t, e, path, media)
				}
			}
		}
	}
}

// probeBody sends the example of a body with each field in turn replaced by its probes.
func (c client) probeBody(t *testing.T, e endpoint, path string, media *openapi3.MediaType) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(media.Schema.Value.Properties)) {
		for _, probe := range probes(media.Schema.Value.Properties[name].Value) {
			if media.Schema.Value.Properties["file"] != nil {
				form := url.Values{"name": {"A"}, "type": {"skin"}}
				form.Set(name, fmt.Sprint(probe.value))
				checkField(t, c.Send(t, e.method, path, encodeMultipart(t, form.Encode(), skinFile(t, 1))), name, probe.value, probe.valid)
				continue
			}
			fields, ok := e.exampleFields().(map[string]any)
			if !ok {
				t.Fatalf("%s has no example of an object", e.OperationID)
			}
			fields = maps.Clone(fields)
			fields[name] = probe.value
			text := testenv.Must(json.Marshal(fields))(t)
			checkField(t, c.Send(t, e.method, path, encodeJSON(string(text))), name, probe.value, probe.valid)
		}
	}
}

// The numbers in the document are the defaults of the settings.
func TestDocumentedLimits(t *testing.T) {
	t.Parallel()
	source := testenv.Must(os.ReadFile("openapi.yaml"))(t)
	_, table, _ := strings.Cut(string(source), "## Limits\n")
	table, _, _ = strings.Cut(table, "A client address is")
	var rows []string
	for line := range strings.Lines(table) {
		if row, ok := strings.CutPrefix(strings.TrimSpace(line), "| "); ok {
			rows = append(rows, row)
		}
	}

	settings := testenv.Must(config.Read[coretest.Config]("", nil))(t)
	rates, logins, quotas := settings.API.Limits, settings.Logins, settings.Quotas
	mebibytes := func(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
	kibibytes := func(n int) string { return fmt.Sprintf("%d KiB", n>>10) }
	thousands := func(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }
	want := []string{
		"what | limit | beyond it |",
		fmt.Sprintf("requests | %d a second, %d at once, for each user; for each client address when not signed in | 429 |", rates.Requests, rates.RequestsBurst),
		fmt.Sprintf("failed log-ins | in 15 minutes, %d for an e-mail address from one client address, and %d from one client address; for an e-mail address, "+
			"%d an hour from anywhere, then a growing delay where its user neither signed in nor reset the password before; "+
			"for an hour after a reset, the %d do not bind its user where it was done | 429 |", logins.PerPair, logins.PerAddress, logins.PerAccount, logins.PerAddress),
		fmt.Sprintf("registrations and changes of an e-mail address | %d an hour from one client address, and %d from one client network; invalid ones (422) do not count | 429 |", rates.Registrations, 5*rates.Registrations),
		fmt.Sprintf("requests for a new password | %d an hour from one client address, and %d from one client network | 429 |", rates.Resets, 5*rates.Resets),
		fmt.Sprintf("e-mails | %d of a kind an hour to one address; beyond it none is sent, and a user who asks for one to verify their address is refused | 429 |", settings.Mail.PerHour),
		fmt.Sprintf("uploads | %d a minute for each user, whatever comes of them | 429 |", rates.Uploads),
		fmt.Sprintf("requests for the price of an upload | %d a minute for each user, whatever comes of them | 429 |", rates.Prices),
		fmt.Sprintf("changes of players, avatars, textures and closets | %d a minute for each user, whatever comes of them | 429 |", rates.Changes),
		fmt.Sprintf("reports of textures | %d an hour for each user, and %d for each client network, whatever comes of them | 429 |", rates.Reports, 5*rates.Reports),
		fmt.Sprintf("textures uploaded | %s and %s for each user | 403, code 1 |", thousands(quotas.Textures), mebibytes(quotas.TextureBytes)),
		fmt.Sprintf("players | %d for each user | 403, code 1 |", quotas.Players),
		fmt.Sprintf("closet items | %s for each user | 403, code 1 |", thousands(quotas.ClosetItems)),
		fmt.Sprintf("texture file | %s | 413 |", mebibytes(int64(settings.Textures.Bytes))),
		fmt.Sprintf("scale of a texture | %d times the classic size: a skin of %[2]d × %[2]d pixels, a cape of %[2]d × %[3]d | 422 |", settings.Textures.Scale, 64*settings.Textures.Scale, 32*settings.Textures.Scale),
		fmt.Sprintf("request body | %s, besides the file of an upload and 12 bytes for each character of a notification's content | 413 |", kibibytes(settings.API.BodyBytes)),
		"fields of a form | 64 | 400 |", // a constant
		fmt.Sprintf("header block | %s | 431 |", kibibytes(settings.Limits.HeaderBytes)),
		"notifications | kept for a year | |", // set by cmd/core
		fmt.Sprintf("changes of a score | listed one by one for %.0f days | |", settings.Scores.Retention.Hours()/24),
	}
	cmptest.Same(t, rows, want, "the table of limits")

	// Other sentences of the document have numbers, too.
	text := strings.Join(strings.Fields(string(source)), " ")
	const day = 24
	for _, sentence := range []string{
		fmt.Sprintf("the seconds for which it works: %.0f unless", settings.TokenTTL.Seconds()),
		fmt.Sprintf("still works for %.0f seconds, and", settings.Grace.Seconds()),
		fmt.Sprintf("After those %.0f seconds", settings.Grace.Seconds()),
		fmt.Sprintf("Within %.0f seconds of being replaced", settings.Grace.Seconds()),
		fmt.Sprintf("%.0f days after its last refresh, and %.0f days after its log-in", settings.Idle.Hours()/day, settings.MaxAge.Hours()/day),
		fmt.Sprintf("Only %d sessions of a user", settings.PerUser),
		fmt.Sprintf("did not arrive in time: within %.0f seconds, or %.0f for an upload", settings.Limits.ReadTimeout.Seconds(), settings.Limits.UploadTimeout.Seconds()),
		fmt.Sprintf("the request line included, is larger than %s", kibibytes(settings.Limits.HeaderBytes)),
		fmt.Sprintf("The header block is larger than %s (code 4)", kibibytes(settings.Limits.HeaderBytes)),
		fmt.Sprintf("The body is larger than %s (code 4)", kibibytes(settings.API.BodyBytes)),
		fmt.Sprintf("The body is larger than %s bytes (code 4)", thousands(settings.API.BodyBytes+12*core.MaxContent)),
		fmt.Sprintf("The file is larger than %s, or the body than %s and %s (code 4)",
			mebibytes(int64(settings.Textures.Bytes)), mebibytes(int64(settings.Textures.Bytes)), kibibytes(settings.API.BodyBytes)),
		fmt.Sprintf("Takes a PNG file of at most %s", mebibytes(int64(settings.Textures.Bytes))),
		fmt.Sprintf("its scale, from 1 to %d unless the site sets another bound, which is %d at most", settings.Textures.Scale, skin.MaxScale),
		fmt.Sprintf("tell of once the request counts: %d an hour", rates.Registrations),
		fmt.Sprintf("limit once it counts: %d an hour", rates.Registrations),
		fmt.Sprintf("tell of: %d a minute", rates.Uploads),
		fmt.Sprintf("tell of: %d an hour for each user, whatever comes of them", rates.Reports),
		fmt.Sprintf("headers tell of: %d an hour from one client address", rates.Resets),
		fmt.Sprintf("marks the address as verified. The link works for %.0f hours unless", settings.Mail.Verification.Hours()),
		fmt.Sprintf("sets a new password. The link works for %.0f hour.", settings.Mail.Reset.Hours()),
		fmt.Sprintf("makes the account, and signs in. The link works for %.0f hours.", settings.Mail.Verification.Hours()),
		fmt.Sprintf("A player's name: %d to %d letters", settings.Players.NameMin, settings.Players.NameMax),
	} {
		testenv.Equal(t, strings.Contains(text, sentence), true, "the document has %q, which holds of the defaults", sentence)
	}
}

// A parameter with its documented default means the same as an absent one.
func TestDocumentedDefaults(t *testing.T) {
	t.Parallel()
	c := start(t).signUp(t)
	c.fillCloset(t, "steve", numbered(7)...)
	c.fillCloset(t, "cape", "Cape")
	want := string(c.Get(t, "/api/closet").Body)
	for _, parameter := range mustLoadContract(t).Paths.Value("/api/closet").Get.Parameters {
		if p := parameter.Value; p.Schema.Value.Default != nil {
			got := c.Get(t, fmt.Sprintf("/api/closet?%s=%v", p.Name, p.Schema.Value.Default)).Body
			testenv.Equal(t, string(got), want, "with %s at its default", p.Name)
		}
	}
}
