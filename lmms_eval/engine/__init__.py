"""plan -> stream -> journal -> score -> aggregate: asks a model every question of a run and scores every answer."""
