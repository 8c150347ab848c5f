package pages

// Words returns the texts of all languages by their codes.
func Words() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, l := range languages {
		all[l.Code] = l.words
	}
	return all
}
