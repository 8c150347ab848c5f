package yggdrasil

// Routes returns the paths of the routes by method.
func (s *Server) Routes() map[string][]string { return s.routes().List() }

// Metadata returns the body of the response to GET Root.
func (s *Server) Metadata() []byte { return s.metadata }
