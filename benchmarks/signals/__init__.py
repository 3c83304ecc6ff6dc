"""The statistics of signals: how long they take, and how soon planted signals are found."""
