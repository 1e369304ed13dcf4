"""Networks against each other: our methods that train, and the conditional GAN of smartnoise-synth."""
