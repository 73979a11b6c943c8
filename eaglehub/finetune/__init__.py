"""Fine-tuning: a drafter learns from the target's own answers, and is kept only where it accepts more than before."""
