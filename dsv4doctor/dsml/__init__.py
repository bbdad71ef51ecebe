"""DeepSeek's tool-call markup: what it is made of, a tolerant reader and a strict one."""
