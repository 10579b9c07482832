"""The compiled world of the language: `run` is what to call.

A text's Python source is lowered to op-codes (values.py, rows.py, expressions.py, lowering.py, me.py, primitives.py), which one kernel
obeys: events.py, cores.py, mail.py, rings.py, texts.py, flows.py, codes.py and machine.py, numbers and fields in layout.py. job.py makes a
job's arrays and runs it; building.py compiles the kernel, whose plain files are its oracle.
"""
