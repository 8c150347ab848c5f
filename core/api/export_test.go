package api

// Routes returns the paths of the route table by method.
func (s *Server) Routes() map[string][]string { return s.routes().List() }
