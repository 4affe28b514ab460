"""Pages that scripts draw: a browser draws them, our own client fetches what they are made of."""
